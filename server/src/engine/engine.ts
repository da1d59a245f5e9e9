/**
 * The engine: all that a process can do with queues and items. The HTTP edges and programs that embed Redrive
 * use the same functions.
 *
 * - Concurrent calls for a queue are collected and written as one batch (call-lane.ts).
 * - Leases wait for items and share them fairly (lease-dispatcher.ts).
 * - Leases end, items expire and scheduled items become available in the background (due-scheduler.ts).
 * - The engine is the only caller of `storage.write` (writer.ts).
 *
 * Start reading at create-engine.ts; queue-runtime.ts follows a call for one queue.
 */
import type { ItemId, QueueName } from '../core/ids/ids.ts'
import type { Item, Leased } from '../core/items/item.ts'
import type { NewQueue, PolicyChanges, Queue } from '../core/items/queue.ts'
import type { RetryRequest } from '../core/items/transitions.ts'
import type { Instant } from '../core/time/instant.ts'
import type { TraceContext } from '../core/trace/trace-context.ts'
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
import type { Quotas } from './quotas/quotas.ts'
import type { Writer } from './writes/writer.ts'

export interface Engine {
  createQueue(queue: NewQueue, attribution?: Attribution): Promise<Queue>
  updateQueue(name: QueueName, changes: PolicyChanges, attribution?: Attribution): Promise<Queue>
  /**
   * Rejects requests that wait in the queue with QUEUE_SHUTTING_DOWN. If this server dies before the end,
   * another one or the next one finishes the deletion. Unless forced, rejects with QUEUE_HOLDS_LETTERS if the
   * queue has open letters.
   */
  deleteQueue(
    name: QueueName,
    attribution?: Attribution,
    how?: Readonly<{ isForced: boolean }>,
  ): Promise<void>
  /**
   * Finishes deletions of queues that another server or an earlier call began and that made no progress for
   * 15 s. A pass of the background work.
   */
  finishQueueDeletions(): Promise<void>
  getQueue(name: QueueName): Promise<Queue | null>
  /**
   * Reads the queue and its counts from the store, so that changes by other servers apply here. Rejects with
   * QUEUE_NOT_FOUND if the queue was deleted; requests that wait in it are rejected as in `deleteQueue`.
   */
  reload(name: QueueName): Promise<void>
  listQueues(query: QueuesQuery): Promise<readonly Queue[]>

  /** Stores all items, in order, in one partition: by default the one with the fewest available items. */
  produce(queue: QueueName, items: readonly NewItem[], options?: ProduceOptions): Promise<ProducedItems>

  /**
   * Waits until there is at least one item, then leases 1 to `countMax` items of one partition. Rejects with
   * LEASE_TIMEOUT if no item arrived in time, and with CLIENT_ID_BUSY if this client already waits. A caller
   * whose signal aborts gets no items.
   */
  lease(queue: QueueName, options: LeaseOptions): Promise<LeasedItems>

  /** All or nothing. Rejects with ITEM_NOT_FOUND or ITEM_NOT_LEASED, naming the first such id in order. */
  complete(queue: QueueName, partition: number, ids: readonly ItemId[], options?: CallOptions): Promise<void>
  retry(
    queue: QueueName,
    partition: number,
    items: readonly RetriedItem[],
    options?: CallOptions,
  ): Promise<readonly ItemChange[]>
  /** Moves the deadline of leases to now + `leaseTimeoutUs`, by default the queue's. Returns the deadline. */
  extend(
    queue: QueueName,
    partition: number,
    ids: readonly ItemId[],
    leaseTimeoutUs?: number,
    options?: CallOptions,
  ): Promise<number>

  /**
   * Imports in steps of 1,000 items or 16 MiB, each a transaction. If it rejects, the first items may be
   * stored; a repeated call skips those that have a source id.
   */
  importItems(
    queue: QueueName,
    partition: number,
    items: readonly ItemToImport[],
    attribution?: Attribution,
  ): Promise<readonly ImportResult[]>
  /**
   * Removes items in steps, each with its audit row, and discards open letters instead. A call that ended
   * half-way can be repeated. Rejects with LETTER_NOT_DISCARDABLE if a redrive of a letter is in progress.
   */
  deleteItems(
    queue: QueueName,
    partition: number,
    ids: readonly ItemId[],
    attribution?: Attribution,
  ): Promise<RemovedCounts>
  /**
   * Removes items in steps, each with its audit row, and discards open letters instead. Letters whose redrive
   * is in progress stay. Items that arrive in the meantime may be removed, too. A call that ended half-way
   * can be repeated.
   */
  clear(queue: QueueName, what: ClearOptions, attribution?: Attribution): Promise<RemovedCounts>
  listItems(query: ItemsQuery): Promise<readonly Item[]>
  readStats(queue: QueueName): Promise<QueueStats>

  /**
   * When a worker last asked for items of the queue; now if one waits at this server. Calls to other servers
   * on the same store are known after about 5 s, and with an accuracy of 30 s. Null: none ever asked.
   */
  readLastLeaseCallAt(queue: QueueName): Promise<Instant | null>

  /** The engine with the queues of these namespaces: all others do not exist for the caller. */
  within(namespaces: readonly string[]): Engine
  /** The engine whose lists of items have the content of these namespaces only. */
  readableIn(namespaces: readonly string[]): Engine

  /**
   * Writes commands that have no function of their own here, in one transaction: everything that other layers
   * change (letters, campaigns, locks). Leases that wait for the items are served at once, on this server and
   * on others.
   */
  write: Writer['write']
  /** The quotas of namespaces, for layers that add items by `write`, and for the API. */
  readonly quotas: Quotas
  /**
   * Calls the listener for each event of a committed write. Returns a function that ends the subscription.
   */
  onEvent(listener: (event: EngineEvent) => void): () => void

  /**
   * Calls the listener for each queue in which items became available, on this server or on another one. A
   * call can be lost, or come without an item. Returns a function that ends the subscription.
   */
  onAvailable(listener: (queue: QueueName) => void): () => void

  /**
   * For tests. While a queue is held, requests are accepted and counted but not processed; released, they are
   * processed in order of arrival.
   */
  hold(queue: QueueName, isHeld: boolean): void
  /** Everything that is due by now has happened when it resolves. */
  advance(): Promise<void>
  /** For tests. Records the lease calls of this server for other servers, as it does every 5 s. */
  recordLeaseCalls(): Promise<void>

  /**
   * Accepts no new calls. Waiting leases are rejected with SHUTTING_DOWN, everything else finishes. A second
   * call is harmless.
   */
  close(): Promise<void>
}

/** The actor and the reason, for the audit row in the transaction of the change, or of its first step. */
export type Attribution = Pick<
  AuditEntry,
  'actor' | 'reason' | 'requestId' | 'namespace' | 'address' | 'keyPrefix'
>

/** `trace`: the span of the caller. The items of a produce call get it as headers. */
export type CallOptions = Readonly<{ timeoutMs?: number; signal?: AbortSignal; trace?: TraceContext }>
export type ProduceOptions = CallOptions &
  Readonly<{
    partition?: number
    /**
     * Calls with the same key within the window are one call: written once, and all get the same ids. A call
     * with the same key and other items is rejected.
     */
    once?: Readonly<{ key: string; windowUs: number }>
  }>
/** `isRepeat`: an earlier call with the same key produced them. */
export type ProducedItems = Readonly<{ partition: number; ids: readonly ItemId[]; isRepeat: boolean }>
export type LeaseOptions = Readonly<{
  clientId: string
  countMax: number
  timeoutMs: number
  signal?: AbortSignal
  trace?: TraceContext
  /** Called before items are assigned: the client may have disconnected before the signal aborts. */
  isConnected?: () => boolean
}>
export type LeasedItems = Readonly<{ partition: number; items: readonly Leased[] }>
/** Without `availableAt`, the queue's retry policy decides when the item is available again. */
export type RetriedItem = Readonly<
  { id: ItemId } & Partial<Pick<RetryRequest, 'isDead' | 'error'>> &
    Partial<Pick<RetryRequest, 'availableAt'>>
>
export type ClearOptions = Readonly<{
  isWaiting: boolean
  isScheduled: boolean
  isLeased: boolean
  /** Also discards letters of class `financial`. Otherwise `clear` rejects with QUEUE_HOLDS_LETTERS. */
  isForced?: boolean
}>
/** How many items were removed, and how many letters were discarded. */
export type RemovedCounts = Readonly<{ removed: number; discarded: number }>
export type QueueStats = Readonly<{
  /** Requests that are not written yet. */
  produceWaiting: number
  /** Leases that wait for items. */
  leaseWaiting: number
  completeWaiting: number
  /** Requests that are being written. */
  inFlight: number
  partitions: readonly PartitionCounts[]
}>
