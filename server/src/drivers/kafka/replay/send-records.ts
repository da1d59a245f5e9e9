/** Sends records in batches that a broker accepts, and reports where each of them is. */
import { compatibilityPartitioner, type Producer } from '@platformatic/kafka'
import { describeKafkaError, hasKafkaError } from '../cluster/describe-error.ts'
import type { RecordToSend, ReplayRefusal } from './create-record.ts'

/** Brokers refuse larger batches by default, each with the records of one partition. */
const batchBytesMax = 900 * 1_024
const batchRecordsMax = 1_000
/** The approximate bytes that Kafka adds to a record. */
const recordOverhead = 70

type Sendable = Readonly<{ record: RecordToSend; item: Readonly<{ id: string }> }>
export type Sent<S> = S & Readonly<{ partition: number; offset: number }>
export type SentBatch<S> = Readonly<{
  sent: readonly Sent<S>[]
  failed: readonly Readonly<{ id: string; refusal: ReplayRefusal }>[]
}>

/** Rejects if Kafka does not answer; then it is unknown whether the last batch was stored. */
export async function* sendRecords<S extends Sendable>(
  producer: Producer,
  sendings: readonly S[],
): AsyncGenerator<SentBatch<S>> {
  for (const batch of divide(sendings)) yield* sendBatch(producer, batch)
}

async function* sendBatch<S extends Sendable>(
  producer: Producer,
  batch: readonly S[],
): AsyncGenerator<SentBatch<S>> {
  try {
    yield { sent: await send(producer, batch), failed: [] }
  } catch (error) {
    if (!isFaultOfRecord(error)) throw error
    const [only] = batch
    if (batch.length === 1 && only !== undefined) {
      const message = `Kafka refused the record: ${describeKafkaError(error)}`
      yield { sent: [], failed: [{ id: only.item.id, refusal: { code: 'refused', message } }] }
      return
    }
    // One record must not keep the others from being sent.
    for (const each of batch) yield* sendBatch(producer, [each])
  }
}

async function send<S extends Sendable>(
  producer: Producer,
  batch: readonly S[],
): Promise<readonly Sent<S>[]> {
  const topics = [...new Set(batch.map(({ record }) => record.topic))]
  const metadata = await producer.metadata({ topics })
  const placed = batch.map((sending) => {
    const { topic, partition, key } = sending.record
    const count = metadata.topics.get(topic)?.partitionsCount ?? 1
    return { sending, partition: partition ?? choosePartition(key, count) }
  })
  const { offsets = [] } = await producer.send({
    messages: placed.map(({ sending: { record }, partition }) => ({
      topic: record.topic,
      partition,
      ...(record.key !== null && { key: toBuffer(record.key) }),
      ...(record.value !== null && { value: toBuffer(record.value) }),
      headers: new Map(
        record.headers.map(([name, value]) => [Buffer.from(name), (value && toBuffer(value)) as Buffer]),
      ),
    })),
    acks: -1,
    idempotent: true,
  })
  // The answer has the offset of the first record of each partition; the others follow it.
  const next = new Map(
    offsets.map(({ topic, partition, offset }) => [`${topic}/${partition}`, Number(offset)]),
  )
  return placed.map(({ sending, partition }) => {
    const place = `${sending.record.topic}/${partition}`
    const offset = next.get(place)
    if (offset === undefined) throw new Error(`Kafka did not report the offset of records in ${place}`)
    next.set(place, offset + 1)
    return { ...sending, partition, offset }
  })
}

let rotation = 0

/** Like the Java client: by the hash of the key. Records without a key are spread. */
function choosePartition(key: Uint8Array | null, count: number): number {
  if (key === null) return rotation++ % count
  return compatibilityPartitioner({} as never, toBuffer(key)) % count
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Records in order, in batches that are small enough even if all of them go to one partition. */
function* divide<S extends Sendable>(sendings: readonly S[]): Generator<readonly S[]> {
  let batch: S[] = []
  let bytes = 0
  for (const sending of sendings) {
    const size = measure(sending.record)
    if (batch.length > 0 && (bytes + size > batchBytesMax || batch.length === batchRecordsMax)) {
      yield batch
      ;[batch, bytes] = [[], 0]
    }
    batch.push(sending)
    bytes += size
  }
  if (batch.length > 0) yield batch
}

function measure({ key, value, headers }: RecordToSend): number {
  const headerBytes = headers.reduce(
    (sum, [name, held]) => sum + name.length + (held?.byteLength ?? 0) + 8,
    0,
  )
  return recordOverhead + (key?.byteLength ?? 0) + (value?.byteLength ?? 0) + headerBytes
}

function isFaultOfRecord(error: unknown): boolean {
  return hasKafkaError(
    error,
    'MESSAGE_TOO_LARGE',
    'RECORD_LIST_TOO_LARGE',
    'INVALID_RECORD',
    'INVALID_TOPIC_EXCEPTION',
    'TOPIC_AUTHORIZATION_FAILED',
    'POLICY_VIOLATION',
  )
}
