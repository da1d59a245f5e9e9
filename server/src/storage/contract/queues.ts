/** Queues: their definition (name, partitions, policy), without their items. */
import type { QueueName } from '../../core/ids/ids.ts'
import type { NewQueue, PolicyChanges, Queue } from '../../core/items/queue.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { AuditContext, AuditEntry } from './audit.ts'

export type QueueCommand = CreateQueue | UpdateQueue | DeleteQueue | CancelQueueDeletion | RecordLeaseCalls

export type QueueResults = {
  'create-queue': Queue
  'update-queue': Queue
  'delete-queue': DeleteQueueResult
  'cancel-queue-deletion': undefined
  'record-lease-calls': undefined
}

export interface QueueStore {
  getQueue(name: QueueName): Promise<Queue | null>
  /** In byte order of their names. */
  listQueues(query: QueuesQuery): Promise<readonly Queue[]>
  /** Deletions with `pending` that are not finished, the one without progress for longest first. */
  listQueueDeletions(countMax: number): Promise<readonly QueueDeletion[]>
  /** The newest lease call that a server has recorded; null: none. */
  readLeaseCall(name: QueueName): Promise<Instant | null>
}

/**
 * Refused with QUEUE_EXISTS, with NAMESPACE_NOT_FOUND if its namespace does not exist, or with
 * DEAD_QUEUE_INVALID if the dead queue does not exist, is the queue itself, or has a dead queue of its own.
 */
export type CreateQueue = Readonly<{ op: 'create-queue'; queue: NewQueue; now: Instant }>

/**
 * Refused with QUEUE_NOT_FOUND, or with DEAD_QUEUE_INVALID for the reasons of `CreateQueue` and if the queue
 * gets a dead queue while it is itself the dead queue of another queue.
 */
export type UpdateQueue = Readonly<{
  op: 'update-queue'
  name: QueueName
  changes: PolicyChanges
  now: Instant
}>

/**
 * Deletes a queue with all its items, counts and archived items. Refused with QUEUE_IN_USE while it is the
 * dead queue of another queue, and unless forced with QUEUE_HOLDS_LETTERS while it has open letters (waiting,
 * in progress or DEAD).
 */
export type DeleteQueue = Readonly<{
  op: 'delete-queue'
  name: QueueName
  /** Delete the queue even if it holds open letters, which are lost. */
  isForced?: boolean
  /**
   * Deletes at most this many items or archived items, and up to `stepBytesMax` bytes of payloads. Call again
   * until `isMore` is false: the queue itself is deleted last. Default: everything in one transaction.
   */
  countMax?: number
  /**
   * If the queue still exists after this step, the store remembers that it is being deleted: another server
   * finishes the deletion if this one dies. `at`: now.
   */
  pending?: Pick<QueueDeletion, 'at' | 'attribution'>
  /** The queue that is meant. A queue of this name that was created at another time is not found. */
  createdAt?: Instant
  /** The audit row has the number of deleted letters by state. */
  audit?: AuditContext
}>

/** The deletion cannot be finished, for example because the queue has new open letters. */
export type CancelQueueDeletion = Readonly<{
  op: 'cancel-queue-deletion'
  name: QueueName
  createdAt: Instant
}>

/** `at`: the time of the last step. `attribution`: who deletes the queue, for the audit rows. */
export type QueueDeletion = Readonly<{
  name: QueueName
  createdAt: Instant
  at: Instant
  isForced: boolean
  attribution: Omit<AuditEntry, 'at' | 'action' | 'target' | 'details'> | null
}>

/** `removed`: the items that this command has deleted. `isMore`: the queue still exists. */
export type DeleteQueueResult = Readonly<{ removed: number; isMore: boolean }>

/**
 * Records when workers last asked for items. An earlier time than the recorded one changes nothing, and
 * queues that do not exist are skipped.
 */
export type RecordLeaseCalls = Readonly<{
  op: 'record-lease-calls'
  calls: readonly Readonly<{ queue: QueueName; at: Instant }>[]
}>

/** `from`: the first name to list, included. */
export type QueuesQuery = Readonly<{ from?: string; namespace?: string; countMax: number }>
