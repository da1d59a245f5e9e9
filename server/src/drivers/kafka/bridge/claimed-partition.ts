/** One partition of a dead-letter topic that this server has claimed. */
import type { KafkaPosition } from '../../../storage/contract/kafka.ts'

export type ClaimedPartition = {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  readonly queue: string
  /** The partition of the dead queue that has the letters of this partition. */
  queuePartition: number
  readonly incarnation: number
  readonly epoch: number
  /** The position in the store: the next write must start from it. */
  stored: number | null
  /** The offset of the next record to fetch. It is ahead of `stored` while records are being stored. */
  fetchFrom: bigint
  /** The node that leads the partition. */
  leader: number
  /** The end of the partition at the last fetch. */
  endOffset: bigint
  /** False: another claim has replaced this one, and what was fetched for it is dropped. */
  isCurrent: boolean
}

export function partitionKey({ topic, partition }: Readonly<{ topic: string; partition: number }>): string {
  return `${topic}/${partition}`
}

/** The offset to read from, and what is wrong with the position, if anything. */
export function decideStart(
  { nextOffset }: Pick<KafkaPosition, 'nextOffset'>,
  earliest: bigint,
  latest: bigint,
): Readonly<{ fetchFrom: bigint; problem: 'removed' | 'truncated' | null; lostCount: number }> {
  if (nextOffset === null) return { fetchFrom: earliest, problem: null, lostCount: 0 }
  const next = BigInt(nextOffset)
  if (next < earliest) return { fetchFrom: earliest, problem: 'removed', lostCount: Number(earliest - next) }
  if (next > latest) return { fetchFrom: latest, problem: 'truncated', lostCount: Number(next - latest) }
  return { fetchFrom: next, problem: null, lostCount: 0 }
}
