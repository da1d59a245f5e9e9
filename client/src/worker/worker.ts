import type { LeasedItem } from '../item.ts'

export type HandlerContext = Readonly<{
  queue: string
  partition: number
  /**
   * Aborts when the lease was lost, because another worker may hold the item now, and when a stop takes too
   * long. What the handler does after a lost lease is not reported to the server.
   */
  signal: AbortSignal
}>

/**
 * Does the work of one item. When it returns, the item is completed; when it throws, the item is given back
 * with the error. Throw `RetryLater` to choose the time of the next attempt, `Dead` when none can help.
 */
export type Handler = (item: LeasedItem, context: HandlerContext) => unknown

export type WorkOptions = Readonly<{
  /** Handlers that run at once. Default 10. */
  concurrency?: number
  /** Items leased beyond that, so that a handler need not wait for the next one. Default 0. */
  prefetch?: number
  /** How long one lease call waits for items. Default 5,000. */
  waitMs?: number
  /** The name of this worker for the server: in dead letters and in the list of workers. Default: made up. */
  clientId?: string
  /** Whether leases of running handlers are extended, where the server can. Default true. */
  isExtending?: boolean
  /** Completions per call, up to 1,000. Default 200. */
  completeBatchMax?: number
  /** How long a completion waits for others. Default 5. */
  completeLingerMs?: number
  /** The rest before the next attempt after a failed one. Default: the queue's retry policy decides. */
  retryDelayMs?: (item: LeasedItem, error: unknown) => number | undefined
  /** The longest rest while the server is away. Default 5,000. */
  backoffMsMax?: number
  /** Stops the worker, as `stop()` does. */
  signal?: AbortSignal

  /** Nothing to do: the queue was empty for a whole lease call, and no handler runs. */
  onIdle?: () => void
  onCompleted?: (item: LeasedItem) => void
  /** Given back: for a retry, or as dead. */
  onRetried?: (item: LeasedItem, error: unknown) => void
  /** The lease ended before the item could be completed or given back. Somebody will get it again. */
  onLost?: (item: LeasedItem) => void
  /**
   * Trouble with the server, which the worker overcomes by itself, and what handlers throw. Default: the
   * first kind is written to the console.
   */
  onError?: (error: unknown, about: TroubleContext) => void
}>

export type TroubleContext = Readonly<{
  during: 'lease' | 'extend' | 'complete' | 'retry' | 'handler'
  /** For `handler`. */
  item?: LeasedItem
}>

export type WorkerCounts = Readonly<{
  /** Since the start. */
  leased: number
  completed: number
  retried: number
  lost: number
  /** Settled, but the answer was lost: completed or retried, or to be had again. */
  unknown: number
  /** Now. */
  running: number
  prefetched: number
  settling: number
}>

export interface Worker {
  readonly clientId: string
  counts(): WorkerCounts
  /**
   * Ends the lease call under way, waits until what is leased was worked on, and reports it. After
   * `withinMs` (default 30,000) the call is cut and the handlers' signals abort, and a few seconds later it
   * resolves whatever they do; what is unfinished then comes back when its lease ends. Never rejects. Safe
   * twice: the shortest bound counts.
   */
  stop(options?: Readonly<{ withinMs?: number }>): Promise<void>
  /** Resolves when it has stopped. */
  readonly stopped: Promise<void>
}
