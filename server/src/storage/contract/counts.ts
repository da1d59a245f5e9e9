/** Exact counts of items, per partition, and the check that compares them with the rows. */
import type { QueueName } from '../../core/ids/ids.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { Difference } from './difference.ts'
import type { HeldLock } from './locks.ts'

export interface CountStore {
  /**
   * Exact, one entry per partition. The cost depends on the number of partitions, not on the number of items.
   */
  readCounts(query: CountsQuery): Promise<readonly PartitionCounts[]>
  /** Exact, one entry per queue: the store adds up the partitions. */
  readQueueCounts(query: QueueCountsQuery): Promise<readonly QueueCounts[]>
  /** The share of a namespace in the store, for its quota. */
  readUsage(query: UsageQuery): Promise<Usage>

  /**
   * Compares every count with the rows that it counts, and checks conservation. Empty if all counts are
   * right. Arrivals per hour are only checked for being too low: letters that are gone, or that failed again,
   * were counted as arrivals too, and no row shows them any more.
   */
  verify(): Promise<readonly Difference[]>
  /**
   * `verify`, then corrects the counts. A returned difference is drift, which means that there is a defect to
   * find. Rejects with LOCK_LOST, and corrects nothing, if `lock` is no longer held. Arrivals are neither
   * compared nor corrected, because no row shows which of them are missing.
   */
  reconcile(lock?: HeldLock): Promise<readonly Difference[]>
}

export type CountsQuery = Readonly<{ queue?: QueueName }>
/**
 * `queues`: only these; default: all. The `countMax` queues that accepted the most items have their own
 * entry. One entry without a name has the sum of all others, if there are others.
 */
export type QueueCountsQuery = Readonly<{ queues?: readonly QueueName[]; countMax: number }>
/** `isWithBytes`: also add up the payloads. The cost then depends on the number of items. */
export type UsageQuery = Readonly<{ namespace: string; isWithBytes: boolean }>
/** Items of all queues, in every state, without the archive. `bytes`: of their payloads; null: not read. */
export type Usage = Readonly<{ queues: number; items: number; bytes: number | null }>
export type QueueCounts = Readonly<Counts & { queue: QueueName | null }>

/**
 * Gauges count the rows that exist now, in the queue or in its archive; totals only grow. Conservation:
 *
 *     accepted = waiting + scheduled + leased + done + dead + discarded + archived
 *       + completed + deadLettered + dropped + deleted + forgotten + purged
 */
export type Counts = Readonly<{
  waiting: number
  scheduled: number
  leased: number
  done: number
  dead: number
  /** Letters that an operator discarded. Their rows are kept. */
  discarded: number
  /** Produced, imported, or arrived as a dead letter. */
  accepted: number
  completed: number
  /** Moved to the dead queue, or back to the letter that the item was a redrive of. */
  deadLettered: number
  /** Died in a queue without a dead queue. */
  dropped: number
  /** Deleted or cleared on request. */
  deleted: number
  /** Kept as done until the retention time passed, then removed. */
  forgotten: number
  /** In the archive now (a gauge). */
  archived: number
  /** Removed from the archive after the retention time there. */
  purged: number
}>

export type PartitionCounts = Readonly<
  Counts & {
    queue: QueueName
    partition: number
    /** Mean creation time of the waiting and leased items, to the millisecond; null if there are none. */
    createdAtMean: Instant | null
    /** Mean lease deadline of the leased items, to the millisecond; null if there are none. */
    leaseDeadlineMean: Instant | null
  }
>
