/** The records of an answer to a fetch, by partition. */
import type { Consumer } from '@platformatic/kafka'
import type { DeadRecord } from '../../../letters/envelope/read-record.ts'
import type { ClaimedPartition } from './claimed-partition.ts'
import { TransactionFilter } from './transaction-filter.ts'

export type FetchResponse = Awaited<ReturnType<Consumer['fetch']>>

/** Records of one partition, in order. `until`: the offset of the next record to fetch. */
export type FetchedRecords = Readonly<{
  claimed: ClaimedPartition
  records: readonly DeadRecord[]
  until: number
}>

/** The records of these batches have the time at which the broker stored them. */
const hasLogTimeBit = 0x08

export function decodeFetch(
  cluster: string,
  response: FetchResponse,
  find: (topicId: string, partition: number) => ClaimedPartition | undefined,
): readonly FetchedRecords[] {
  return response.responses.flatMap(({ topicId, partitions }) =>
    partitions.flatMap((answer) => {
      const claimed = find(topicId, answer.partitionIndex)
      if (claimed === undefined || answer.errorCode !== 0) return []
      claimed.endOffset = answer.highWatermark
      const fetched = decodePartition(cluster, claimed, answer)
      return fetched === undefined ? [] : [fetched]
    }),
  )
}

type PartitionAnswer = FetchResponse['responses'][number]['partitions'][number]

function decodePartition(
  cluster: string,
  claimed: ClaimedPartition,
  { records: batches, abortedTransactions }: PartitionAnswer,
): FetchedRecords | undefined {
  const records: DeadRecord[] = []
  const filter = new TransactionFilter(abortedTransactions)
  let until = claimed.fetchFrom
  for (const batch of batches ?? []) {
    // The last offset of a batch stays the same when its records are compacted away.
    const batchEnd = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n
    if (batchEnd > until) until = batchEnd
    if (!filter.keeps(batch)) continue
    const hasLogTime = (batch.attributes & hasLogTimeBit) !== 0
    for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
      const offset = batch.firstOffset + BigInt(offsetDelta)
      // Kafka answers with whole batches, which may start before the requested offset.
      if (offset < claimed.fetchFrom) continue
      records.push({
        cluster,
        topic: claimed.topic,
        partition: claimed.partition,
        offset: Number(offset),
        timestampMs: Number(hasLogTime ? batch.maxTimestamp : batch.firstTimestamp + timestampDelta),
        key,
        value,
        headers,
      })
    }
  }
  return until === claimed.fetchFrom ? undefined : { claimed, records, until: Number(until) }
}
