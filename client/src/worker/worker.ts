import type { LeasedItem } from '../queues/item.ts'
import type { WorkerHeartbeatOptions } from './worker-heartbeat.ts'

export type HandlerContext = Readonly<{
  queue: string
  partition: number
  /**
   * Aborts if the lease is lost, because another worker may process the item now, and if a stop takes too
   * long. The outcome of a handler whose lease is lost is not sent to the server.
   */
  signal: AbortSignal
}>

/**
 * Processes one item. If it returns, the item is completed; if it throws, the item is retried and the error
 * is recorded. Throw `RetryLater` to choose the time of the next attempt, and `Dead` if no retry can help.
 */
export type Handler = (item: LeasedItem, context: HandlerContext) => unknown

export type WorkOptions = Readonly<{
  /** The number of handlers that run concurrently. Default 10. */
  concurrency?: number
  /**
   * The number of additional items to lease, so that a free handler need not wait for a lease call. Default
   * 0.
   */
  prefetch?: number
  /** How long one lease call waits for items. Default 5,000. */
  waitMs?: number
  /** The name of this worker in dead letters and in the list of workers. Default: a random name. */
  clientId?: string
  /** Extends the leases of running handlers, if the server supports it. Default true. */
  isExtending?: boolean
  /** The maximum number of completions per call, up to 1,000. Default 200. */
  completeBatchMax?: number
  /** How long a completion waits for others to share a call. Default 5. */
  completeLingerMs?: number
  /** The delay before the next attempt of a failed item. Default: the queue's retry policy decides. */
  retryDelayMs?: (item: LeasedItem, error: unknown) => number | undefined
  /** The longest delay between tries while the server is unavailable. Default 5,000. */
  backoffMsMax?: number
  /** Stops the worker, as `stop()` does. */
  signal?: AbortSignal
  /** Reports the worker to the watch of the server. Default: no heartbeats. */
  heartbeat?: WorkerHeartbeatOptions

  /** Called if a lease call returned no items and no handler is running. */
  onIdle?: () => void
  onCompleted?: (item: LeasedItem) => void
  /** Called if the item was retried or became dead. */
  onRetried?: (item: LeasedItem, error: unknown) => void
  /**
   * Called if the lease ended before the item could be completed or retried. A worker will lease it again.
   */
  onLost?: (item: LeasedItem) => void
  /**
   * Called with errors of calls, which the worker retries, and with errors of handlers. Default: errors of
   * calls are written to the console.
   */
  onError?: (error: unknown, context: ErrorContext) => void
}>

export type ErrorContext = Readonly<{
  during: 'lease' | 'extend' | 'complete' | 'retry' | 'handler' | 'heartbeat'
  /** Set for `handler`. */
  item?: LeasedItem
}>

export type WorkerCounts = Readonly<{
  /** `leased` to `unknown` count since the start. */
  leased: number
  completed: number
  retried: number
  lost: number
  /** Items whose settlement got no answer: completed, retried, or still leased. */
  unknown: number
  /** `running` to `settling` are current values. */
  running: number
  prefetched: number
  settling: number
}>

export interface Worker {
  readonly clientId: string
  counts(): WorkerCounts
  /**
   * Ends the lease call in progress, waits until all leased items are processed, and settles them. After
   * `withinMs` (default 30,000) the lease call and the handlers' signals are aborted. The promise resolves a
   * few seconds later even if handlers still run; their items return to the queue when their leases end.
   * Never rejects. If called several times, the shortest `withinMs` applies.
   */
  stop(options?: Readonly<{ withinMs?: number }>): Promise<void>
  /** Resolves when the worker has stopped. */
  readonly stopped: Promise<void>
}
