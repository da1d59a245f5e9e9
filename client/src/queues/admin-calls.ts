/** Calls of operators: the server's state, and creating, changing and watching queues. */
import type { Caller, CallOptions } from '../http/caller.ts'
import { RedriveError } from '../http/error.ts'
import { toQueryString } from '../http/query.ts'
import { describeFailedAnswer, toError } from '../letters/failed-call.ts'
import type { Health, ServerInfo, WireNewQueue, WireQueue, WireQueuesPage } from '../wire.ts'
import {
  type CreatedQueue,
  fromWireQueue,
  type NewQueue,
  type PolicyChanges,
  type Queue,
  type QueuesPage,
  type QueuesQuery,
  toWirePolicy,
} from './queue.ts'
import { createQueueApi } from './queue-api.ts'
import { toQueuePath } from './queue-path.ts'
import { fromWireStats, type QueueStats, type WireStats } from './queue-stats.ts'

/** `reason` is recorded in the audit log. */
export type AuditedOptions = CallOptions & Readonly<{ reason?: string }>

export type ClearQuery = Readonly<{
  /** Deletes waiting items. */
  isWaiting?: boolean
  /** Deletes waiting and leased items. */
  isLeased?: boolean
  /** Deletes scheduled items. */
  isScheduled?: boolean
}>

export interface AdminCalls {
  /** Never repeated: a repeated call could report a later state. */
  getInfo(options?: CallOptions): Promise<ServerInfo>
  /** Resolves also for a server whose checks fail. Never repeated. */
  getHealth(options?: CallOptions): Promise<Health>

  /**
   * Repeated if the answer is lost; then QUEUE_EXISTS with `isOutcomeUnknown` can mean that this call created
   * it.
   */
  createQueue(queue: NewQueue, options?: AuditedOptions): Promise<CreatedQueue>
  /** Changes the given rules of the policy; the others stay. */
  updateQueue(name: string, policy: PolicyChanges, options?: AuditedOptions): Promise<Queue>
  /**
   * Deletes a queue with all its items. A queue with open dead letters is deleted only with `force`, and the
   * letters are lost.
   */
  deleteQueue(name: string, options?: CallOptions & Readonly<{ force?: boolean }>): Promise<void>
  /** A queue with its policy and exact counts. */
  getQueue(name: string, options?: CallOptions): Promise<Queue>
  /** Queues with their policy and exact counts, in byte order of name. */
  listQueues(query?: QueuesQuery, options?: CallOptions): Promise<QueuesPage>
  /** Stops new leases until the queue is resumed. Existing leases stay valid. */
  pauseQueue(name: string, options?: AuditedOptions): Promise<Queue>
  resumeQueue(name: string, options?: AuditedOptions): Promise<Queue>

  getQueueStats(queue: string, options?: CallOptions): Promise<QueueStats>
  /**
   * Discards open dead letters instead of deleting them. Not repeated if the answer is lost: a repeat would
   * delete items that arrived in between.
   */
  clearQueue(queue: string, query: ClearQuery, options?: CallOptions): Promise<void>
  /**
   * The server reads the queue from the store again, so that changes made at another server apply
   * immediately.
   */
  reloadQueue(queue: string, options?: CallOptions): Promise<void>
}

export function createAdminCalls(caller: Caller): AdminCalls {
  const { call, callOnce } = createQueueApi(caller)
  const get = async <T>(path: string, options?: CallOptions): Promise<T> =>
    (await caller({ method: 'GET', path: `/api/v1/${path}`, isRepeatable: true }, options)).body as T
  const send = async (
    method: 'POST' | 'PATCH',
    path: string,
    fields: object,
    { reason, ...options }: AuditedOptions = {},
  ): Promise<unknown> => {
    const body = { ...fields, reason }
    const request = { method, path: `/api/v1/${path}`, body, isRepeatable: true } as const
    return (await caller(request, options)).body
  }
  const change = async (...request: Parameters<typeof send>): Promise<Queue> =>
    fromWireQueue((await send(...request)) as WireQueue)

  return {
    getInfo: (options) => get('info', { retriesMax: 0, ...options }),
    getHealth: (options) => getHealth(caller, options),

    createQueue: async ({ name, namespace, partitions, policy = {}, isPaused }, options) => {
      const queue = { name, namespace, partitions, policy: toWirePolicy(policy), is_paused: isPaused }
      const created = (await send('POST', 'queues', queue, options)) as WireNewQueue
      return { ...fromWireQueue(created), warnings: created.warnings }
    },
    updateQueue: (name, policy, options) =>
      change('PATCH', toQueuePath(name), { policy: toWirePolicy(policy) }, options),
    deleteQueue: async (name, { force = false, ...options } = {}) => {
      const body = { queue_name: name, ...(force && { force: true }) }
      await call('queues.delete', body, options).catch(ignoreIfAlreadyDeleted)
    },
    getQueue: async (name, options) => fromWireQueue(await get<WireQueue>(toQueuePath(name), options)),
    listQueues: async (query = {}, options) => {
      const page = await get<WireQueuesPage>(`queues${toQueryString(query)}`, options)
      return { queues: page.queues.map(fromWireQueue), nextCursor: page.next_cursor }
    },
    pauseQueue: (name, options) => change('POST', `${toQueuePath(name)}/pause`, {}, options),
    resumeQueue: (name, options) => change('POST', `${toQueuePath(name)}/resume`, {}, options),

    getQueueStats: async (queue, options) => {
      const { body } = await call('queue.stats', { queue_name: queue }, options)
      return fromWireStats(body as WireStats)
    },
    clearQueue: async (queue, { isWaiting, isLeased, isScheduled }, options) => {
      const scope = { queue: isWaiting || isLeased, destructive: isLeased, scheduled: isScheduled }
      await callOnce('queue.clear', { queue_name: queue, ...scope }, options)
    },
    reloadQueue: async (queue, options) => {
      await call('queue.reload', { queue_name: queue }, options)
    },
  }
}

/** The try whose answer was lost, or another client, deleted the queue: the result is the requested one. */
function ignoreIfAlreadyDeleted(error: unknown): void {
  const isMissing = error instanceof RedriveError && error.code === 'QUEUE_NOT_FOUND'
  if (!(isMissing && error.isOutcomeUnknown)) throw error
}

async function getHealth(call: Caller, options?: CallOptions): Promise<Health> {
  const request = { method: 'GET', path: '/health', isRepeatable: true, successStatuses: [200, 503] } as const
  const { status, body, headers } = await call(request, { retriesMax: 0, ...options })
  if (isHealth(body)) return body
  throw toError(describeFailedAnswer(status, body, headers), { isRetryable: true, isOutcomeUnknown: false })
}

/** A stopping server also answers 503, but with an error body. */
function isHealth(body: unknown): body is Health {
  return typeof body === 'object' && body !== null && 'status' in body && 'checks' in body
}
