/** The Queue API as methods: what goes in, what comes out, and what may be repeated. */
import type { Caller, CallOptions } from './caller.ts'
import type { Clock } from './clock.ts'
import { RedriveError } from './error.ts'
import {
  type ImportedItem,
  LeasedItem,
  type NewItem,
  StoredItem,
  toWireImported,
  toWireItem,
  type WireLeasedItem,
  type WireStoredItem,
} from './item.ts'
import { failureHeader, type ItemFailure, toFailureHeader } from './item-failure.ts'
import {
  fromWireQueue,
  type NewQueue,
  type QueueInfo,
  type QueueUpdate,
  toWireQueue,
  type WireQueueInfo,
} from './queue-info.ts'
import { fromWireStats, type QueueStats, type WireStats } from './queue-stats.ts'
import { msUntil, type Time, toWireDuration, toWireTime } from './time.ts'

/** Calls that must not be done twice are not repeated when an answer is lost, unless this asks for it. */
export type ProduceOptions = CallOptions &
  Readonly<{
    /** Repeat also when the answer was lost: the items are stored at least once, perhaps twice. */
    isTwiceFine?: boolean
  }>

export type LeaseOptions = CallOptions &
  Readonly<{
    /** Who asks. A client can wait once per queue: give each worker an id of its own. */
    clientId: string
    /** How many items at most, up to 1,000. Default 1. */
    countMax?: number
    /** How long to wait for the first item, up to 240,000. Default 30,000. */
    waitMs?: number
  }>

export type Lease = Readonly<{
  /** Complete and retry need it. */
  partition: number
  /** Empty when none came in time. */
  items: readonly LeasedItem[]
  /** How long the leases last from now on, by the server's clock. */
  leaseMsLeft: number
}>

/** Dead whatever is asked for once its attempts exceed the queue's `attemptsMax`. */
export type RetriedItem = Readonly<{
  id: string
  /** Not before then. Left out: when the queue's policy says, which is at once unless somebody set another. */
  retryAt?: Time
  /** No retry can help: dead now, whatever the attempts. */
  isDead?: boolean
}>

export type RetryOptions = CallOptions & Readonly<{ failure?: ItemFailure }>

export type ItemsQuery = Readonly<{
  partition?: number
  /** Starts at this id, or at the next one. */
  from?: string
  /** Default 1,000. */
  limit?: number
}>

export type ClearQuery = Readonly<{
  /** Items that wait. */
  isWaiting?: boolean
  /** With those that wait: leased ones too. */
  isLeased?: boolean
  isScheduled?: boolean
}>

export interface QueueCalls {
  /**
   * Stores the items, all or none, in order, in one partition. Not repeated when the answer is lost: see
   * `isTwiceFine`.
   */
  produce(queue: string, items: NewItem | readonly NewItem[], options?: ProduceOptions): Promise<void>
  /** Waits for items. Not repeated when the answer is lost: leases that nobody knows of end by themselves. */
  lease(queue: string, options: LeaseOptions): Promise<Lease>
  /**
   * Ends leased items for good, all or none. Repeated when the answer is lost; then ITEM_NOT_FOUND with
   * `isOutcomeUnknown` can mean that the first try had done it.
   */
  complete(queue: string, partition: number, ids: readonly string[], options?: CallOptions): Promise<void>
  /** Gives leased items back, all or none. Repeated like `complete`. */
  retry(
    queue: string,
    partition: number,
    items: readonly RetriedItem[],
    options?: RetryOptions,
  ): Promise<void>
  stats(queue: string, options?: CallOptions): Promise<QueueStats>
  /** Not repeated when the answer is lost: it would take what came in since. */
  clear(queue: string, what: ClearQuery, options?: CallOptions): Promise<void>
  /** The server reads the queue anew: what was changed at another one holds here at once. */
  reload(queue: string, options?: CallOptions): Promise<void>

  /** Repeated when the answer is lost; then QUEUE_EXISTS with `isOutcomeUnknown` can mean that it is ours. */
  createQueue(queue: NewQueue, options?: CallOptions): Promise<void>
  updateQueue(queue: QueueUpdate, options?: CallOptions): Promise<void>
  /** With all its items, for good. `isForced`: also a dead queue of class `financial` that has open letters. */
  deleteQueue(name: string, options?: CallOptions & Readonly<{ isForced?: boolean }>): Promise<void>
  queueInfo(name: string, options?: CallOptions): Promise<QueueInfo>
  /** In byte order of name. */
  queueInfos(
    query?: Readonly<{ from?: string; limit?: number; namespace?: string }>,
    options?: CallOptions,
  ): Promise<readonly QueueInfo[]>

  /** Waiting and leased items of one partition, in order of id. */
  items(queue: string, query?: ItemsQuery, options?: CallOptions): Promise<readonly StoredItem[]>
  scheduledItems(queue: string, query?: ItemsQuery, options?: CallOptions): Promise<readonly StoredItem[]>
  /**
   * Stores items as given. One whose source id is there already is skipped and comes back without an id. Stored
   * in steps, so a call that failed may have stored the first of the items: with source ids it can be repeated.
   */
  importItems(
    queue: string,
    partition: number,
    items: readonly ImportedItem[],
    options?: ProduceOptions,
  ): Promise<readonly StoredItem[]>
  /** Whatever their state. Ids that are not there are fine. */
  deleteItems(queue: string, partition: number, ids: readonly string[], options?: CallOptions): Promise<void>
}

type Body = Readonly<Record<string, unknown>>

/** Node's fetch gives up on an answer after 300 seconds, whatever it is told. */
const waitMsMax = 240_000

export function createQueueCalls(call: Caller, clock: Clock, answerMsMax: number): QueueCalls {
  const ask = (path: string, body: Body, options?: CallOptions) =>
    call({ method: 'POST', path: `/v1/${path}`, body, mayBeDoneTwice: true }, options)
  const askOnce = (path: string, body: Body, { isTwiceFine = false, ...options }: ProduceOptions = {}) =>
    call({ method: 'POST', path: `/v1/${path}`, body, mayBeDoneTwice: isTwiceFine }, options)
  // Less than we wait ourselves: a server that gives up first can say that nothing was done.
  const requestTimeout = (options: CallOptions = {}) =>
    toWireDuration(Math.min(Math.max((options.answerMsMax ?? answerMsMax) * 0.8, 20), 14 * 60_000))

  return {
    produce: async (queue, items, options) => {
      const list = Array.isArray(items) ? (items as readonly NewItem[]) : [items as NewItem]
      const body = {
        queue_name: queue,
        request_timeout: requestTimeout(options),
        items: list.map(toWireItem),
      }
      await askOnce('queue.produce', body, options)
    },

    lease: async (queue, { clientId, countMax = 1, waitMs = 30_000, ...options }) => {
      const waitMsBound = Math.min(waitMs, waitMsMax)
      const body = {
        queue_name: queue,
        client_id: clientId,
        batch_size: countMax,
        request_timeout: toWireDuration(waitMsBound),
      }
      // "Nothing came in time" reads like any other "try again", but is an answer here.
      const emptyOrThrow = (error: unknown) => {
        if (error instanceof RedriveError && error.code === 'LEASE_TIMEOUT') return undefined
        throw error
      }
      const path = '/v1/queue.lease'
      const answer = await call(
        {
          method: 'POST',
          path,
          body,
          mayBeDoneTwice: false,
          waitMs: waitMsBound,
          finalCodes: ['LEASE_TIMEOUT'],
        },
        options,
      ).catch(emptyOrThrow)
      const { partition = 0, items = [] } = (answer?.body ?? {}) as {
        partition?: number
        items?: readonly WireLeasedItem[]
      }
      const deadline = items[0]?.lease_deadline
      return {
        partition,
        items: items.map((item) => new LeasedItem(item)),
        leaseMsLeft:
          deadline === undefined || answer === undefined
            ? 0
            : msUntil(deadline, answer.headers.get('date'), clock.nowMs()),
      }
    },

    complete: async (queue, partition, ids, options) => {
      const body = { queue_name: queue, partition, request_timeout: requestTimeout(options), ids }
      await ask('queue.complete', body, options)
    },

    retry: async (queue, partition, items, { failure, ...options } = {}) => {
      const given = items.map(({ id, retryAt, isDead }) => ({
        id,
        retry_at: retryAt && toWireTime(retryAt),
        dead: isDead,
      }))
      await call(
        {
          method: 'POST',
          path: '/v1/queue.retry',
          body: { queue_name: queue, partition, items: given },
          mayBeDoneTwice: true,
          ...(failure !== undefined && { headers: { [failureHeader]: toFailureHeader(failure) } }),
        },
        options,
      )
    },

    stats: async (queue, options) => {
      const { body } = await ask('queue.stats', { queue_name: queue }, options)
      return fromWireStats(body as WireStats)
    },
    clear: async (queue, { isWaiting, isLeased, isScheduled }, options) => {
      const body = {
        queue_name: queue,
        queue: isWaiting || isLeased,
        destructive: isLeased,
        scheduled: isScheduled,
      }
      await askOnce('queue.clear', body, options)
    },
    reload: async (queue, options) => {
      await ask('queue.reload', { queue_name: queue }, options)
    },

    createQueue: async (queue, options) => {
      await ask('queues.create', toWireQueue({ partitions: 1, ...queue }), options)
    },
    updateQueue: async (queue, options) => {
      await ask('queues.update', toWireQueue(queue), options)
    },
    deleteQueue: async (name, { isForced = false, ...options } = {}) => {
      const body = { queue_name: name, ...(isForced && { force: true }) }
      await ask('queues.delete', body, options).catch((error: unknown) => {
        // Deleted by the try whose answer was lost, or by somebody else since: gone, as was asked for.
        const isGone = error instanceof RedriveError && error.code === 'QUEUE_NOT_FOUND'
        if (!(isGone && error.isOutcomeUnknown)) throw error
      })
    },
    queueInfo: async (name, options) => {
      const { body } = await ask('queues.info', { queue_name: name }, options)
      return fromWireQueue(body as WireQueueInfo)
    },
    queueInfos: async ({ from, limit, namespace } = {}, options) => {
      const { body } = await ask('queues.list', { pivot: from, limit, namespace }, options)
      return listOf<WireQueueInfo>(body).map(fromWireQueue)
    },

    items: async (queue, { partition, from, limit } = {}, options) => {
      const query = { queue_name: queue, partition, pivot: from, limit }
      const { body } = await ask('storage/items.list', query, options)
      return listOf<WireStoredItem>(body).map((item) => new StoredItem(item))
    },
    scheduledItems: async (queue, { partition, from, limit } = {}, options) => {
      const query = { queue_name: queue, partition, pivot: from, limit }
      const { body } = await ask('storage/scheduled.list', query, options)
      return listOf<WireStoredItem>(body).map((item) => new StoredItem(item))
    },
    importItems: async (queue, partition, items, options) => {
      const given = { queue_name: queue, partition, items: items.map(toWireImported) }
      const { body } = await askOnce('storage/items.import', given, options)
      return listOf<WireStoredItem>(body).map((item) => new StoredItem(item))
    },
    deleteItems: async (queue, partition, ids, options) => {
      await ask('storage/items.delete', { queue_name: queue, partition, ids }, options)
    },
  }
}

/** Empty lists are left out. */
function listOf<T>(body: unknown): readonly T[] {
  return (body as { items?: readonly T[] }).items ?? []
}
