import { type CallOptions, createCaller } from './caller.ts'
import { type Clock, systemClock } from './clock.ts'
import { errorOf, failedAnswer } from './failed-call.ts'
import { createQueueCalls, type QueueCalls } from './queue-calls.ts'
import { msUntil } from './time.ts'
import type { Health, QueuesPage, QueueView, ServerInfo } from './wire.ts'
import { startWorker } from './worker/start-worker.ts'
import type { Handler, Worker, WorkOptions } from './worker/worker.ts'

export type ClientOptions = Readonly<{
  /** Where the server is, such as `http://127.0.0.1:8080`. In a page of the server itself: leave it out. */
  url?: string
  /** Sent with every call as `Authorization: Bearer`. */
  apiKey?: string
  /** How long an answer may take. Default 30,000. */
  answerMsMax?: number
  /** How often a call is repeated where that does no harm. Default 5. */
  retriesMax?: number
  /** The rest before the first repeat; it doubles each time. Default 100. */
  backoffMsMin?: number
  /** Default 5,000. */
  backoffMsMax?: number
  fetch?: typeof fetch
  clock?: Clock
  /** Gives numbers from 0 up to 1. */
  random?: () => number
}>

export type Extended = Readonly<{ leaseDeadline: string; leaseMsLeft: number }>

/**
 * Calls a Redrive server. Each call rejects with a RedriveError when the server says no or cannot be
 * asked, and with the signal's reason when its signal aborts.
 */
export interface Client extends QueueCalls {
  /** Never repeated by itself: it asks what is so now. */
  info(options?: CallOptions): Promise<ServerInfo>
  /** Resolves with the failing checks, too: a sick server that answers is an answer. Never repeated. */
  health(options?: CallOptions): Promise<Health>

  /** Queues with their policy and exact counts, in byte order of name. */
  queues(query?: Readonly<{ after?: string; limit?: number }>, options?: CallOptions): Promise<QueuesPage>
  queue(name: string, options?: CallOptions): Promise<QueueView>

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

  /** Leases items and calls the handler with each, until it is stopped. */
  work(queue: string, handler: Handler, options?: WorkOptions): Worker
}

export function createClient(options: ClientOptions = {}): Client {
  const { url = '', answerMsMax = 30_000, retriesMax = 5, backoffMsMin = 100, backoffMsMax = 5_000 } = options
  const { clock = systemClock, random = Math.random } = options
  const call = createCaller({
    base: url.replace(/\/+$/, ''),
    apiKey: options.apiKey,
    // Looked up at each call and called as a bare function: browsers refuse any other receiver.
    fetch: (...args) => (options.fetch ?? fetch)(...args),
    clock,
    random,
    answerMsMax,
    retriesMax,
    backoff: { msMin: backoffMsMin, msMax: backoffMsMax },
  })
  const get = async (path: string, options?: CallOptions) =>
    (await call({ method: 'GET', path, mayBeDoneTwice: true }, options)).body

  const calls: Omit<Client, 'work'> = {
    ...createQueueCalls(call, clock, answerMsMax),

    info: async (options) => (await get('/api/v1/info', { retriesMax: 0, ...options })) as ServerInfo,
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
      return (await get(`/api/v1/queues?${query}`, options)) as QueuesPage
    },
    queue: async (name, options) =>
      (await get(`/api/v1/queues/${encodeURIComponent(name)}`, options)) as QueueView,

    extend: async (queue, partition, ids, { lease, ...options } = {}) => {
      const path = `/api/v1/queues/${encodeURIComponent(queue)}/leases/extend`
      const request = { method: 'POST', path, body: { partition, ids, lease }, mayBeDoneTwice: true } as const
      const { body, headers } = await call(request, options)
      const { lease_deadline: leaseDeadline } = body as { lease_deadline: string }
      return { leaseDeadline, leaseMsLeft: msUntil(leaseDeadline, headers.get('date'), clock.nowMs()) }
    },
  }
  return {
    ...calls,
    work: (queue, handler, options = {}) =>
      startWorker({ client: calls, clock, random, queue, handler, options }),
  }
}

/** A server that is stopping answers 503 as well, with an error instead. */
function isHealth(body: unknown): body is Health {
  return typeof body === 'object' && body !== null && 'status' in body && 'checks' in body
}
