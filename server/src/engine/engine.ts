/**
 * What can be done with queues and items, in one process: the HTTP edges and code that embeds Redrive
 * use the same functions. The engine is the only caller of `storage.write` (writer.ts).
 *
 * Concurrent calls for a queue are gathered and written as one batch; leases wait for items (long
 * poll) and are dealt to in turn; what time does happens by itself.
 */
import type { Item, Leased } from '../core/item.ts'
import type { NewQueue, PolicyChanges, Queue } from '../core/queue.ts'
import type { RetryRequest } from '../core/transitions.ts'
import type { AuditEntry } from '../storage/contract/audit.ts'
import type { PartitionCounts } from '../storage/contract/counts.ts'
import type {
  ImportResult,
  ItemChange,
  ItemsQuery,
  ItemToImport,
  NewItem,
} from '../storage/contract/items.ts'
import type { QueuesQuery } from '../storage/contract/queues.ts'
import type { EngineEvent } from './events.ts'
import type { Writer } from './writer.ts'

export interface Engine {
  createQueue(queue: NewQueue, trace?: Trace): Promise<Queue>
  updateQueue(name: string, changes: PolicyChanges, trace?: Trace): Promise<Queue>
  /**
   * Requests that wait in it are rejected with QUEUE_SHUTTING_DOWN. Rejects with QUEUE_HOLDS_LETTERS where open letters of
   * class `financial` would go with it, unless that is forced.
   */
  deleteQueue(name: string, trace?: Trace, how?: Readonly<{ isForced: boolean }>): Promise<void>
  getQueue(name: string): Promise<Queue | null>
  /**
   * Reads the queue and its counts anew, whatever is remembered of it here: what another server changed holds
   * from now on. Rejects with QUEUE_NOT_FOUND when it is gone; requests that wait in it are rejected as when it is deleted here.
   */
  reload(name: string): Promise<void>
  listQueues(query: QueuesQuery): Promise<readonly Queue[]>

  /** All items go, in order, to one partition: the one with the fewest items that nobody holds. */
  produce(queue: string, items: readonly NewItem[], options?: ProduceOptions): Promise<ProducedItems>

  /**
   * Waits until there is at least one item, then gives 1 to `countMax` of one partition. Rejects with
   * LEASE_TIMEOUT when there was none in time, with CLIENT_ID_BUSY when this client waits already.
   * A caller whose signal aborts is given nothing.
   */
  lease(queue: string, options: LeaseOptions): Promise<LeasedItems>

  /** All or nothing. Rejects with ITEM_NOT_FOUND or ITEM_NOT_LEASED, naming the first id in order. */
  complete(queue: string, partition: number, ids: readonly string[], options?: CallOptions): Promise<void>
  retry(
    queue: string,
    partition: number,
    items: readonly RetriedItem[],
    options?: CallOptions,
  ): Promise<readonly ItemChange[]>
  /** Moves the deadline of leases to now + `leaseUs`, by default the queue's lease time. Gives the new deadline. */
  extend(
    queue: string,
    partition: number,
    ids: readonly string[],
    leaseUs?: number,
    options?: CallOptions,
  ): Promise<number>

  /**
   * In steps of 1,000 items or 16 MiB, each a transaction. When it rejects the first of the items may be stored; repeated, it
   * skips those that have a source id.
   */
  importItems(
    queue: string,
    partition: number,
    items: readonly ItemToImport[],
    trace?: Trace,
  ): Promise<readonly ImportResult[]>
  deleteItems(queue: string, partition: number, ids: readonly string[], trace?: Trace): Promise<number>
  /** In steps, too: what comes in meanwhile may go as well. Says how many were removed; each step has its audit row. */
  clear(queue: string, what: ClearOptions, trace?: Trace): Promise<number>
  listItems(query: ItemsQuery): Promise<readonly Item[]>
  stats(queue: string): Promise<QueueStats>
  /**
   * Writes commands that have no function of their own, in one transaction: everything that other layers change (letters,
   * campaigns, locks). Leases that wait for the items are served at once, on this server and on others.
   */
  write: Writer['write']
  /** Calls the listener with what each committed write changed. Returns a function that ends the subscription. */
  onEvent(listener: (event: EngineEvent) => void): () => void

  /** Takes and counts requests for the queue, but processes none until released, in order of arrival. */
  hold(queue: string, isHeld: boolean): void
  /** Everything that is due by now has happened when it resolves. */
  advance(): Promise<void>

  /** No new calls; leases that wait are rejected with SHUTTING_DOWN, everything else finishes. Safe twice. */
  close(): Promise<void>
}

/** Who did it and why: written as an audit row in the transaction of the change, or of its first step. */
export type Trace = Pick<AuditEntry, 'actor' | 'reason' | 'requestId'>

export type CallOptions = Readonly<{ timeoutMs?: number; signal?: AbortSignal }>
export type ProduceOptions = CallOptions &
  Readonly<{
    partition?: number
    /** The same key within the window stands for the same call: written once, answered alike, refused with other items. */
    once?: Readonly<{ key: string; windowUs: number }>
  }>
/** `isRepeat`: they were produced by an earlier call with the same key. */
export type ProducedItems = Readonly<{ partition: number; ids: readonly string[]; isRepeat: boolean }>
export type LeaseOptions = Readonly<{
  clientId: string
  countMax: number
  timeoutMs: number
  signal?: AbortSignal
  /** Asked before it is given something: whoever waits may be gone before the signal can tell. */
  isThere?: () => boolean
}>
export type LeasedItems = Readonly<{ partition: number; items: readonly Leased[] }>
/** `availableAt` undefined: when the queue's retry policy says. */
export type RetriedItem = Readonly<
  { id: string } & Partial<Pick<RetryRequest, 'isDead' | 'error'>> &
    Partial<Pick<RetryRequest, 'availableAt'>>
>
export type ClearOptions = Readonly<{
  isWaiting: boolean
  isScheduled: boolean
  isLeased: boolean
  /** Also letters of class `financial`; else it rejects with QUEUE_HOLDS_LETTERS where there are any. */
  isForced?: boolean
}>
export type QueueStats = Readonly<{
  /** Requests not yet written. */
  produceWaiting: number
  /** Leases that wait for items. */
  leaseWaiting: number
  completeWaiting: number
  /** Requests being written now. */
  inFlight: number
  partitions: readonly PartitionCounts[]
}>
