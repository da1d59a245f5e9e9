/** Finds the topics that redriven letters are sent to, and creates missing side topics. */
import type { Origin } from '../../../core/items/item.ts'
import { topicNameMax } from '../../../core/kafka/redrive-headers.ts'
import type { ClusterClients } from '../cluster/cluster-clients.ts'
import { describeKafkaError, hasKafkaError, isUnknownTopic } from '../cluster/describe-error.ts'
import type { Cluster } from '../parts.ts'
import type { RecordToSend, ReplayRefusal } from './create-record.ts'

const knownMsMax = 30_000

type KnownTopic = Readonly<{ atMs: number; partitionCount: number | null }>

export class TopicTargets {
  readonly #clients: ClusterClients
  readonly #cluster: Cluster
  readonly #known = new Map<string, KnownTopic>()

  constructor(clients: ClusterClients, cluster: Cluster) {
    this.#clients = clients
    this.#cluster = cluster
  }

  /** The record with a partition that exists, or why its topic cannot be used. */
  async find(record: RecordToSend, { name: source }: Origin): Promise<RecordToSend | ReplayRefusal> {
    if (record.topic.length > topicNameMax)
      return {
        code: 'topic_invalid',
        message: `${record.topic} has ${record.topic.length} characters; Kafka accepts ${topicNameMax}`,
      }
    const count = (await this.#countPartitions(record.topic)) ?? (await this.#create(record.topic, source))
    if (typeof count !== 'number') return count
    // A partition number outside of the topic belongs to a topic that was created again with fewer
    // partitions.
    const isThere = record.partition !== null && record.partition < count
    return { ...record, partition: isThere ? record.partition : null }
  }

  async #create(topic: string, source: string): Promise<number | ReplayRefusal> {
    const isSideTopic = topic !== source
    const partitionCount = isSideTopic ? await this.#countPartitions(source) : null
    if (partitionCount === null)
      return { code: 'topic_missing', message: `topic ${isSideTopic ? source : topic} does not exist` }
    if (!this.#cluster.mayCreateTopics)
      return {
        code: 'topic_missing',
        message: `side topic ${topic} does not exist, and create_topics is false for this cluster`,
      }
    try {
      const admin = await this.#clients.admin()
      await admin.createTopics({ topics: [topic], partitions: partitionCount, replicas: -1 })
    } catch (error) {
      if (hasKafkaError(error, 'TOPIC_ALREADY_EXISTS')) return partitionCount
      if (
        hasKafkaError(error, 'TOPIC_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED', 'POLICY_VIOLATION')
      )
        return {
          code: 'topic_missing',
          message: `side topic ${topic} does not exist and may not be created: ${describeKafkaError(error)}`,
        }
      throw error
    }
    this.#known.set(topic, { atMs: performance.now(), partitionCount })
    return partitionCount
  }

  /** Null: there is no such topic. */
  async #countPartitions(topic: string): Promise<number | null> {
    const known = this.#known.get(topic)
    if (known !== undefined && performance.now() - known.atMs < knownMsMax) return known.partitionCount
    const partitionCount = await this.#readCount(topic)
    // A topic that is missing may be created at any time, so only a topic that is there is remembered.
    if (partitionCount !== null) this.#known.set(topic, { atMs: performance.now(), partitionCount })
    return partitionCount
  }

  async #readCount(topic: string): Promise<number | null> {
    const reader = await this.#clients.reader()
    try {
      const metadata = await reader.metadata({ topics: [topic], forceUpdate: true })
      return metadata.topics.get(topic)?.partitionsCount ?? null
    } catch (error) {
      if (isUnknownTopic(error)) return null
      throw error
    }
  }
}
