import type { Consumer } from '@platformatic/kafka'
import { KafkaRecord, type RawHeader } from '../records/kafka-record.ts'
import { TransactionFilter } from './transaction-filter.ts'

export type FetchResponse = Awaited<ReturnType<Consumer['fetch']>>
type Answer = FetchResponse['responses'][number]['partitions'][number]

/** The records of these batches have the time at which the broker stored them. */
const hasLogTimeBit = 0x08
const recordOverhead = 100

export type Fetched = Readonly<{ records: readonly KafkaRecord[]; until: number; bytes: number }>

type Place = Readonly<{ topic: string; partition: number }>
type Batch = NonNullable<Answer['records']>[number]

/** The records of a partition from an offset on; undefined: none, and no progress. */
export function decodeAnswer(place: Place, answer: Answer, fetchFrom: bigint): Fetched | undefined {
  const records: KafkaRecord[] = []
  const filter = new TransactionFilter(answer.abortedTransactions)
  let until = fetchFrom
  for (const batch of answer.records ?? []) {
    // The last offset of a batch stays the same when its records are compacted away.
    const batchEnd = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n
    if (batchEnd > until) until = batchEnd
    if (filter.keeps(batch)) addRecords(records, place, batch, Number(fetchFrom))
  }
  return until === fetchFrom ? undefined : { records, until: Number(until), bytes: measure(records) }
}

function addRecords(
  records: KafkaRecord[],
  { topic, partition }: Place,
  batch: Batch,
  fetchFrom: number,
): void {
  const hasLogTime = (batch.attributes & hasLogTimeBit) !== 0
  const [firstOffset, firstTimestamp] = [Number(batch.firstOffset), Number(batch.firstTimestamp)]
  const logTime = hasLogTime ? Number(batch.maxTimestamp) : 0
  for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
    const offset = firstOffset + offsetDelta
    // Kafka answers with whole batches, which may start before the requested offset.
    if (offset < fetchFrom) continue
    const timestampMs = hasLogTime ? logTime : firstTimestamp + Number(timestampDelta)
    const rawHeaders = headers as readonly RawHeader[]
    records.push(new KafkaRecord({ topic, partition, offset, timestampMs, key, value, rawHeaders }))
  }
}

function measure(records: readonly KafkaRecord[]): number {
  let bytes = records.length * recordOverhead
  for (const { key, value } of records) bytes += (key?.byteLength ?? 0) + (value?.byteLength ?? 0)
  return bytes
}
