/** The topics of a worker: side topics and dead-letter topics are created if they are missing. */
import { type Admin, ConfigResourceTypes, type Consumer } from '@platformatic/kafka'
import type { WorkerSettings } from '../options.ts'
import { hasKafkaError, isUnknownTopic } from './kafka-errors.ts'

/** The side topic that only this group subscribes to, as Redrive names it. */
export function nameSideTopic(topic: string, group: string): string {
  return `${topic}.redrive.${group.replaceAll(/[^a-zA-Z0-9._-]/g, '_')}`
}

/** Null: it is no side topic of this group. */
export function sourceOfSideTopic(topic: string, group: string): string | null {
  const suffix = nameSideTopic('', group)
  return topic.endsWith(suffix) && topic.length > suffix.length ? topic.slice(0, -suffix.length) : null
}

/** A dead letter is larger than its record: the headers describe the failure. */
const headroomBytes = 64 * 1024
const recordBytesDefault = 1_048_588

export class WorkerTopics {
  readonly #admin: Admin
  readonly #reader: Pick<Consumer, 'metadata'>
  readonly #settings: WorkerSettings
  readonly #partitions = new Map<string, number>()

  constructor(admin: Admin, reader: Pick<Consumer, 'metadata'>, settings: WorkerSettings) {
    this.#admin = admin
    this.#reader = reader
    this.#settings = settings
  }

  /** The topics to subscribe to. Rejects if a topic does not exist. */
  async listSubscribed(onError: (error: unknown, topic: string) => void): Promise<readonly string[]> {
    const { topics, group, readsSideTopics } = this.#settings
    for (const topic of topics)
      if ((await this.#count(topic)) === null) throw new Error(`topic ${topic} does not exist`)
    if (!readsSideTopics) return topics
    const sides: string[] = []
    for (const topic of topics) {
      const side = nameSideTopic(topic, group)
      try {
        if ((await this.#count(side)) !== null || (await this.#create(side, topic, []))) sides.push(side)
      } catch (error) {
        // Without the side topic the worker still reads its topics.
        onError(error, side)
      }
    }
    return [...topics, ...sides]
  }

  /** The number of partitions of each topic now. */
  async countPartitions(topics: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const metadata = await this.#reader.metadata({ topics: [...topics], forceUpdate: true })
    return new Map(topics.map((topic) => [topic, metadata.topics.get(topic)?.partitionsCount ?? 0]))
  }

  /** The number of partitions of a dead-letter topic, which is created if it is missing. */
  async ensureDeadTopic(topic: string, source: string): Promise<number> {
    const known = this.#partitions.get(topic) ?? (await this.#count(topic))
    if (known !== null) return known
    const bytesMax = await this.#readRecordBytesMax(source)
    const configs = [{ name: 'max.message.bytes', value: String(bytesMax + headroomBytes) }]
    await this.#create(topic, source, configs)
    const count = await this.#count(topic)
    if (count === null) throw new Error(`dead-letter topic ${topic} does not exist`)
    return count
  }

  /** The topic may have been deleted or changed. */
  forget(topic: string): void {
    this.#partitions.delete(topic)
  }

  async #create(topic: string, source: string, configs: { name: string; value: string }[]): Promise<boolean> {
    if (!this.#settings.createsTopics) return false
    const partitions = (await this.#count(source)) ?? 1
    try {
      await this.#admin.createTopics({ topics: [topic], partitions, replicas: -1, configs })
    } catch (error) {
      if (!hasKafkaError(error, 'TOPIC_ALREADY_EXISTS')) throw error
    }
    for (let tries = 0; tries < 50 && (await this.#count(topic)) === null; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    return true
  }

  async #count(topic: string): Promise<number | null> {
    try {
      const { topics } = await this.#reader.metadata({ topics: [topic], forceUpdate: true })
      const count = topics.get(topic)?.partitionsCount
      if (count === undefined || count === 0) return null
      this.#partitions.set(topic, count)
      return count
    } catch (error) {
      if (isUnknownTopic(error)) return null
      throw error
    }
  }

  async #readRecordBytesMax(topic: string): Promise<number> {
    const resource = {
      resourceType: ConfigResourceTypes.TOPIC,
      resourceName: topic,
      configurationKeys: ['max.message.bytes'],
    }
    // A cluster may forbid reading configurations.
    const [described] = await this.#admin.describeConfigs({ resources: [resource] }).catch(() => [])
    const bytes = Number(described?.configs.find(({ name }) => name === 'max.message.bytes')?.value)
    return bytes > 0 ? bytes : recordBytesDefault
  }
}
