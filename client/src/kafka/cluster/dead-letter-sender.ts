import { type Admin, Producer } from '@platformatic/kafka'
import type { WorkerSettings } from '../options.ts'
import type { Attempts } from '../partitions/attempts.ts'
import type { DeadLetters } from '../partitions/partition-parts.ts'
import { type DeadLetterRecord, toEnvelope, toPlainDeadLetter } from '../records/dead-letter.ts'
import type { KafkaRecord } from '../records/kafka-record.ts'
import { hasKafkaError } from './kafka-errors.ts'
import { sourceOfSideTopic, type WorkerTopics } from './topics.ts'

export type DeadLetterSenderParts = Readonly<{
  settings: WorkerSettings
  connection: ConstructorParameters<typeof Admin>[0]
  topics: WorkerTopics
  admin: Admin
}>

/** Larger envelopes may be refused: brokers accept records of 1 MiB by default. */
const envelopeBytesMax = 900_000

/** Writes dead letters with all replicas in sync (`acks=all`) and an idempotent producer. */
export class DeadLetterSender implements DeadLetters {
  readonly #parts: DeadLetterSenderParts
  #producer: Producer<Buffer, Buffer, Buffer, Buffer> | undefined

  constructor(parts: DeadLetterSenderParts) {
    this.#parts = parts
  }

  async send(record: KafkaRecord, attempts: Attempts): Promise<string> {
    const { settings, topics } = this.#parts
    const { group, instanceId } = settings
    const topic = settings.nameDeadTopic(sourceOfSideTopic(record.topic, group) ?? record.topic)
    const count = await topics.ensureDeadTopic(topic, record.topic)
    const facts = { record, attempts, group, instanceId }
    const envelope = record.value === null ? null : toEnvelope(facts)
    const isSmall = envelope !== null && (envelope.value?.byteLength ?? 0) <= envelopeBytesMax
    const place = { topic, partition: record.partition % count }
    try {
      await this.#write(place, isSmall ? envelope : toPlainDeadLetter(facts), 'none')
    } catch (error) {
      if (!hasKafkaError(error, 'MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE')) {
        topics.forget(topic)
        throw error
      }
      // The value had just fit in its own topic, and the headers have made the record larger.
      await this.#write(place, toPlainDeadLetter(facts), 'gzip')
    }
    return topic
  }

  async close(): Promise<void> {
    await this.#producer?.close().catch(() => {})
    this.#producer = undefined
  }

  async #write(
    { topic, partition }: Readonly<{ topic: string; partition: number }>,
    { key, value, headers }: DeadLetterRecord,
    compression: 'none' | 'gzip',
  ): Promise<void> {
    this.#producer ??= new Producer<Buffer, Buffer, Buffer, Buffer>({
      ...this.#parts.connection,
      acks: -1,
      idempotent: true,
      autocreateTopics: false,
    })
    const message = {
      topic,
      partition,
      ...(key !== null && { key }),
      ...(value !== null && { value }),
      headers: new Map(headers.map(([name, held]) => [Buffer.from(name), (held ?? null) as Buffer] as const)),
    }
    try {
      await this.#producer.send({ messages: [message], compression })
    } catch (error) {
      // A producer whose sequence numbers are in doubt is replaced.
      if (!hasKafkaError(error, 'MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE')) await this.close()
      throw error
    }
  }
}
