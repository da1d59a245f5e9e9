/** Calls of `/api/v1`: what the Queue API has no place for. Answers are the JSON that `/docs` describes. */
import type { Caller, CallOptions } from './caller.ts'
import type { Clock } from './clock.ts'
import { errorOf, failedAnswer } from './failed-call.ts'
import { type KeyedItem, toWireKeyed } from './item.ts'
import { msUntil } from './time.ts'
import type { Health, PolicyChange, QueuesPage, QueueView, ServerInfo } from './wire.ts'

export type Extended = Readonly<{ leaseDeadline: string; leaseMsLeft: number }>

export type ProducedOnce = Readonly<{
  partition: number
  ids: readonly string[]
  /** An earlier call with the same key had done it. */
  isRepeat: boolean
}>

/** Why, for the audit log. */
export type CareOptions = CallOptions & Readonly<{ reason?: string }>

export interface V1Calls {
  /** Never repeated by itself: it asks what is so now. */
  info(options?: CallOptions): Promise<ServerInfo>
  /** Resolves with the failing checks, too: a sick server that answers is an answer. Never repeated. */
  health(options?: CallOptions): Promise<Health>

  /** Queues with their policy and exact counts, in byte order of name. */
  queues(query?: Readonly<{ after?: string; limit?: number }>, options?: CallOptions): Promise<QueuesPage>
  queue(name: string, options?: CallOptions): Promise<QueueView>
  /** Changes what is named. The rest of the policy stays. */
  changePolicy(name: string, change: PolicyChange, options?: CareOptions): Promise<QueueView>
  /** Gives out no more items until resumed. Leases that are out go on. */
  pause(name: string, options?: CareOptions): Promise<QueueView>
  resume(name: string, options?: CareOptions): Promise<QueueView>

  /**
   * As `produce`, but the key stands for this call: the same key within the window (default `24h`) is done
   * once. So it can be repeated when the answer is lost, and is.
   */
  produceOnce(
    queue: string,
    key: string,
    items: KeyedItem | readonly KeyedItem[],
    options?: CallOptions & Readonly<{ window?: string }>,
  ): Promise<ProducedOnce>

  /**
   * Makes leases last longer: from now on for `lease` (such as `5m`), or for as long as the queue's leases
   * do. All or none, like `complete`.
   */
  extend(
    queue: string,
    partition: number,
    ids: readonly string[],
    options?: CallOptions & Readonly<{ lease?: string }>,
  ): Promise<Extended>
  /**
   * Ends the lease call in which this client waits: that call resolves now, with no items or with those it
   * was just given. False when none waits, or it waits at another server. Unlike aborting the call it can
   * lose nothing.
   */
  cancelLease(queue: string, clientId: string, options?: CallOptions): Promise<boolean>
}

export function createV1Calls(call: Caller, clock: Clock): V1Calls {
  const ask = (method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown, options?: CallOptions) =>
    call({ method, path: `/api/v1/${path}`, body, mayBeDoneTwice: true }, options)
  const pathOf = (queue: string) => `queues/${isDots(queue) ? '~' : ''}${encodeURIComponent(queue)}`
  const care = async (
    method: 'POST' | 'PATCH',
    path: string,
    body: object,
    { reason, ...options }: CareOptions = {},
  ) => (await ask(method, path, { ...body, reason }, options)).body as QueueView

  return {
    info: async (options) =>
      (await ask('GET', 'info', undefined, { retriesMax: 0, ...options })).body as ServerInfo,
    health: async (options) => {
      const request = { method: 'GET', path: '/health', mayBeDoneTwice: true, answers: [200, 503] } as const
      const { status, body, headers } = await call(request, { retriesMax: 0, ...options })
      if (isHealth(body)) return body
      throw errorOf(failedAnswer(status, body, headers), { isRetryable: true, isOutcomeUnknown: false })
    },

    queues: async ({ after, limit } = {}, options) => {
      const query = new URLSearchParams()
      if (after !== undefined) query.set('after', after)
      if (limit !== undefined) query.set('limit', String(limit))
      return (await ask('GET', `queues?${query}`, undefined, options)).body as QueuesPage
    },
    queue: async (name, options) => (await ask('GET', pathOf(name), undefined, options)).body as QueueView,
    changePolicy: (name, policy, options) => care('PATCH', pathOf(name), { policy }, options),
    pause: (name, options) => care('POST', `${pathOf(name)}/pause`, {}, options),
    resume: (name, options) => care('POST', `${pathOf(name)}/resume`, {}, options),

    produceOnce: async (queue, key, items, { window, ...options } = {}) => {
      const list = Array.isArray(items) ? (items as readonly KeyedItem[]) : [items as KeyedItem]
      const sent = { items: list.map(toWireKeyed), idempotency_key: key, idempotency_window: window }
      const { body } = await ask('POST', `${pathOf(queue)}/items`, sent, options)
      const { partition, ids, is_repeat } = body as { partition: number; ids: string[]; is_repeat: boolean }
      return { partition, ids, isRepeat: is_repeat }
    },

    extend: async (queue, partition, ids, { lease, ...options } = {}) => {
      const path = `${pathOf(queue)}/leases/extend`
      const { body, headers } = await ask('POST', path, { partition, ids, lease }, options)
      const { lease_deadline: leaseDeadline } = body as { lease_deadline: string }
      return { leaseDeadline, leaseMsLeft: msUntil(leaseDeadline, headers.get('date'), clock.nowMs()) }
    },
    cancelLease: async (queue, clientId, options) => {
      const path = `${pathOf(queue)}/leases/cancel`
      const { body } = await ask('POST', path, { client_id: clientId }, options)
      return (body as { is_cancelled: boolean }).is_cancelled
    },
  }
}

/** A URL takes these for steps in a path, also when they are escaped. No name has a tilde of its own. */
function isDots(queue: string): boolean {
  return queue === '.' || queue === '..'
}

/** A server that is stopping answers 503 as well, with an error instead. */
function isHealth(body: unknown): body is Health {
  return typeof body === 'object' && body !== null && 'status' in body && 'checks' in body
}
