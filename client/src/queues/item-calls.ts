/** Calls of producers and workers: produce, lease, extend, complete and retry items. */
import type { Caller, CallOptions } from '../http/caller.ts'
import type { Clock } from '../http/clock.ts'
import { RedriveError } from '../http/error.ts'
import { computeMsUntil, type Time, toWireDuration, toWireTime } from '../http/time.ts'
import type { WireCancelledLease, WireExtendedLeases, WireProducedItems } from '../wire.ts'
import {
  type KeyedItem,
  LeasedItem,
  type NewItem,
  toWireItem,
  toWireKeyed,
  type WireLeasedItem,
} from './item.ts'
import { failureHeader, type ItemFailure, toFailureHeader } from './item-failure.ts'
import { createQueueApi, type ProduceOptions, type TraceOptions, toTraceHeaders } from './queue-api.ts'
import { toQueuePath } from './queue-path.ts'

export type LeaseOptions = CallOptions &
  Readonly<{
    /** A client id can wait only once per queue: give each worker its own id. */
    clientId: string
    /** The maximum number of items, up to 1,000. Default 1. */
    countMax?: number
    /** How long to wait for the first item, up to 240,000. Default 30,000. */
    waitMs?: number
  }>

export type Lease = Readonly<{
  /** The partition of all items. `complete` and `retry` need it. */
  partition: number
  /** Empty if no item arrived in time. */
  items: readonly LeasedItem[]
  /** How long the leases last from now on, by the server's clock. */
  leaseMsLeft: number
}>

/** An item becomes dead regardless of these fields once its attempts exceed the queue's `attemptsMax`. */
export type RetriedItem = Readonly<{
  id: string
  /** The item is not leased again before this time. Default: the queue's retry policy decides. */
  retryAt?: Time
  /** No retry can help: the item becomes dead now, regardless of its attempts. */
  isDead?: boolean
}>

export type RetryOptions = CallOptions & Readonly<{ failure?: ItemFailure }>

export type ExtendedLeases = Readonly<{ leaseDeadline: string; leaseMsLeft: number }>

export type ProduceOnceResult = Readonly<{
  partition: number
  ids: readonly string[]
  /** An earlier call with the same key stored the items. */
  isRepeat: boolean
}>

export interface ItemCalls {
  /**
   * Stores the items in order in one partition, all or none. Not repeated if the answer is lost, except with
   * `isDuplicateAllowed`.
   */
  produce(queue: string, items: NewItem | readonly NewItem[], options?: ProduceOptions): Promise<void>
  /**
   * Like `produce`, but calls with the same key within the window (default `24h`) store the items only once.
   * Therefore the call is repeated if the answer is lost.
   */
  produceOnce(
    queue: string,
    key: string,
    items: KeyedItem | readonly KeyedItem[],
    options?: CallOptions & TraceOptions & Readonly<{ window?: string }>,
  ): Promise<ProduceOnceResult>
  /**
   * Waits for items. Not repeated if the answer is lost: items leased by the lost call return when their
   * lease ends.
   */
  lease(queue: string, options: LeaseOptions): Promise<Lease>
  /**
   * Ends the waiting lease call of this client: that call resolves now, with no items or with the items it
   * was just given. False if no call of the client waits at this server. Unlike aborting the call, no leased
   * item is lost.
   */
  cancelLease(queue: string, clientId: string, options?: CallOptions): Promise<boolean>
  /**
   * Extends leases, all or none. They last `leaseTimeout` (such as `5m`) from now on; the default is that of
   * the queue.
   */
  extend(
    queue: string,
    partition: number,
    ids: readonly string[],
    options?: CallOptions & Readonly<{ leaseTimeout?: string }>,
  ): Promise<ExtendedLeases>
  /**
   * Completes leased items, all or none. Repeated if the answer is lost; then ITEM_NOT_FOUND with
   * `isOutcomeUnknown` can mean that the first try succeeded.
   */
  complete(queue: string, partition: number, ids: readonly string[], options?: CallOptions): Promise<void>
  /** Returns leased items to the queue for another attempt, all or none. Repeated like `complete`. */
  retry(
    queue: string,
    partition: number,
    items: readonly RetriedItem[],
    options?: RetryOptions,
  ): Promise<void>
}

/** Node's fetch aborts every answer after 300 seconds, regardless of its options. */
const waitMsMax = 240_000

export function createItemCalls(call: Caller, clock: Clock, answerMsMax: number): ItemCalls {
  const queueApi = createQueueApi(call)
  const postV1 = (queue: string, path: string, body: object, options?: CallOptions, headers = {}) => {
    const request = { method: 'POST', path: `/api/v1/${toQueuePath(queue)}/${path}`, body, headers } as const
    return call({ ...request, isRepeatable: true }, options)
  }
  // Shorter than the client's own timeout, so that the server can still report that it did nothing.
  const requestTimeout = (options: CallOptions = {}) =>
    toWireDuration(Math.min(Math.max((options.answerMsMax ?? answerMsMax) * 0.8, 20), 14 * 60_000))

  return {
    produce: async (queue, items, options) => {
      const request_timeout = requestTimeout(options)
      const body = { queue_name: queue, request_timeout, items: toList<NewItem>(items).map(toWireItem) }
      await queueApi.callOnce('queue.produce', body, options)
    },
    produceOnce: async (queue, key, items, { window, traceparent, tracestate, ...options } = {}) => {
      const wireItems = toList<KeyedItem>(items).map(toWireKeyed)
      const sent = { items: wireItems, idempotency_key: key, idempotency_window: window }
      const headers = toTraceHeaders({ traceparent, tracestate })
      const { body } = await postV1(queue, 'items', sent, options, headers)
      const { partition, ids, is_repeat } = body as WireProducedItems
      return { partition, ids, isRepeat: is_repeat }
    },
    lease: (queue, options) => lease(call, clock, queue, options),
    cancelLease: async (queue, clientId, options) => {
      const { body } = await postV1(queue, 'leases/cancel', { client_id: clientId }, options)
      return (body as WireCancelledLease).is_cancelled
    },
    extend: async (queue, partition, ids, { leaseTimeout, ...options } = {}) => {
      const sent = { partition, ids, lease_timeout: leaseTimeout }
      const { body, headers } = await postV1(queue, 'leases/extend', sent, options)
      const { lease_deadline: leaseDeadline } = body as WireExtendedLeases
      return { leaseDeadline, leaseMsLeft: computeMsUntil(leaseDeadline, headers.get('date'), clock.nowMs()) }
    },
    complete: async (queue, partition, ids, options) => {
      const body = { queue_name: queue, partition, request_timeout: requestTimeout(options), ids }
      await queueApi.call('queue.complete', body, options)
    },
    retry: (queue, partition, items, options) => retry(call, queue, partition, items, options),
  }
}

async function lease(
  call: Caller,
  clock: Clock,
  queue: string,
  { clientId, countMax = 1, waitMs = 30_000, ...options }: LeaseOptions,
): Promise<Lease> {
  const waitMsBound = Math.min(waitMs, waitMsMax)
  const body = {
    queue_name: queue,
    client_id: clientId,
    batch_size: countMax,
    request_timeout: toWireDuration(waitMsBound),
  }
  const headers = { 'x-redrive-trace': '1' }
  const request = { method: 'POST', path: '/v1/queue.lease', body, headers, isRepeatable: false } as const
  const answer = await call(
    { ...request, waitMs: waitMsBound, finalCodes: ['LEASE_TIMEOUT'] },
    options,
  ).catch(ignoreLeaseTimeout)
  if (answer === undefined) return { partition: 0, items: [], leaseMsLeft: 0 }
  const { partition = 0, items = [] } = answer.body as {
    partition?: number
    items?: readonly WireLeasedItem[]
  }
  const deadline = items[0]?.lease_deadline
  return {
    partition,
    items: items.map((item) => new LeasedItem(item)),
    leaseMsLeft:
      deadline === undefined ? 0 : computeMsUntil(deadline, answer.headers.get('date'), clock.nowMs()),
  }
}

/** The Queue API reports "no items in time" as a retryable error. For a lease call it is a normal result. */
function ignoreLeaseTimeout(error: unknown): undefined {
  if (error instanceof RedriveError && error.code === 'LEASE_TIMEOUT') return undefined
  throw error
}

async function retry(
  call: Caller,
  queue: string,
  partition: number,
  items: readonly RetriedItem[],
  { failure, ...options }: RetryOptions = {},
): Promise<void> {
  const wireItems = items.map(({ id, retryAt, isDead }) => ({
    id,
    retry_at: retryAt && toWireTime(retryAt),
    dead: isDead,
  }))
  const body = { queue_name: queue, partition, items: wireItems }
  const headers = failure === undefined ? {} : { [failureHeader]: toFailureHeader(failure) }
  await call({ method: 'POST', path: '/v1/queue.retry', body, headers, isRepeatable: true }, options)
}

function toList<T>(items: T | readonly T[]): readonly T[] {
  return Array.isArray(items) ? (items as readonly T[]) : [items as T]
}
