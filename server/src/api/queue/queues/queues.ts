import { partitionsMax } from '../../../core/items/queue.ts'
import { KnownError } from '../../../errors.ts'
import { createAttribution } from '../../http/attribution.ts'
import { checkPermission } from '../access/checks.ts'
import { createUnknownQueueFault, findQueue } from '../checks/lookup.ts'
import { checkNamespaceName, checkNewQueueName, checkNoNul } from '../checks/names.ts'
import {
  QueueInfoSchema,
  QueuesDeleteRequestSchema,
  QueuesInfoRequestSchema,
  QueuesListRequestSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax, readListLimit } from '../limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { createBadRequest } from '../protocol/fault.ts'
import { queueRoute } from '../protocol/queue-route.ts'
import {
  checkDeadQueue,
  checkMaxAttempts,
  checkNamespaceExists,
  checkReference,
  checkSyntax,
  checkTimeouts,
  findReferringQueue,
  mergeTimeouts,
  readNamespace,
  toQueueInfo,
  translateRefusals,
} from './queue-definition.ts'
import { queuesListResponse, readQueues } from './queues-list-response.ts'

const create_ = queueRoute({
  path: '/v1/queues.create',
  permission: 'queue.create',
  summary: 'Creates a queue.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(QueueInfoSchema),
  handle: async (info, call) => {
    const { engine } = call
    const { queueName: name, requestedPartitions: partitions, maxAttempts, reference } = info
    const timeouts = checkSyntax(info)
    const namespace = readNamespace(info.namespace)
    checkPermission(call, 'queue.create', namespace)
    await checkNamespaceExists(call.context.access(), namespace)
    if ((await engine.getQueue(name)) !== null) throw createExistsFault(name)
    await checkDeadQueue(engine, info)
    checkReference(info)
    checkMaxAttempts(info)
    if (partitions < 1) throw createBadRequest('partitions is invalid; cannot be less than 1')
    if (partitions > partitionsMax)
      throw createBadRequest(`partitions is invalid; cannot be greater than ${partitionsMax}`)
    if (timeouts.leaseTimeoutUs === 0) throw createBadRequest('lease timeout is invalid; cannot be empty')
    if (timeouts.expireTimeoutUs === 0) throw createBadRequest('expire timeout is invalid; cannot be empty')
    checkTimeouts(timeouts)
    const queue = {
      ...timeouts,
      name,
      namespace,
      partitions,
      attemptsMax: maxAttempts,
      deadQueue: info.deadQueue || null,
      reference,
    }
    try {
      await translateRefusals(engine, info, () => engine.createQueue(queue, createAttribution(call.request)))
    } catch (error) {
      if (error instanceof KnownError && error.code === 'QUEUE_EXISTS') throw createExistsFault(name)
      throw error
    }
    return undefined
  },
})

const update = queueRoute({
  path: '/v1/queues.update',
  permission: 'queue.update',
  summary:
    'Changes a queue. Empty timeouts keep their value; max_attempts, reference and dead_queue are always replaced.',
  bodyBytesMax: bodyBytesMax.update,
  request: createCodec(QueueInfoSchema),
  handle: async (info, call) => {
    const { engine } = call
    const given = checkSyntax(info)
    const queue = await findQueue(engine, info.queueName)
    await checkDeadQueue(engine, info)
    checkReference(info)
    checkMaxAttempts(info)
    const timeouts = mergeTimeouts(given, queue)
    checkTimeouts(timeouts)
    const changes = {
      // Only the given timeouts: another request may be changing the other one.
      ...(given.leaseTimeoutUs !== 0 && { leaseTimeoutUs: timeouts.leaseTimeoutUs }),
      ...(given.expireTimeoutUs !== 0 && { expireTimeoutUs: timeouts.expireTimeoutUs }),
      attemptsMax: info.maxAttempts,
      deadQueue: info.deadQueue || null,
      reference: info.reference,
    }
    await translateNotFound(info.queueName, () =>
      translateRefusals(engine, info, () =>
        engine.updateQueue(info.queueName, changes, createAttribution(call.request)),
      ),
    )
    return undefined
  },
})

const list = queueRoute({
  path: '/v1/queues.list',
  permission: 'queue.list',
  summary:
    'Lists the queues of a namespace in byte order of their names, starting at the pivot. A list ends with the ' +
    'queue that reaches 4 MiB; continue with its name as the pivot.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(QueuesListRequestSchema),
  response: queuesListResponse,
  handle: async ({ pivot, limit, namespace }, { engine }) => {
    const countMax = readListLimit(limit)
    if (pivot.includes('~'))
      throw createBadRequest(`pivot is invalid; '${pivot}' cannot contain '~' character`)
    checkNoNul('pivot', pivot)
    checkNamespaceName(namespace)
    return readQueues(engine, {
      namespace: readNamespace(namespace),
      countMax,
      ...(pivot !== '' && { from: pivot }),
    })
  },
})

const info = queueRoute({
  path: '/v1/queues.info',
  permission: 'queue.stats',
  summary: 'Returns the definition of a queue.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(QueuesInfoRequestSchema),
  response: createCodec(QueueInfoSchema),
  handle: async ({ queueName }, { engine }) => toQueueInfo(await findQueue(engine, queueName)),
})

const delete_ = queueRoute({
  path: '/v1/queues.delete',
  permission: 'queue.delete',
  summary: 'Deletes a queue and all its items. A queue with open dead letters is deleted only with force.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(QueuesDeleteRequestSchema),
  handle: async ({ queueName, force }, call) => {
    const { engine } = call
    checkNewQueueName(queueName)
    try {
      await translateNotFound(queueName, () =>
        engine.deleteQueue(queueName, createAttribution(call.request), { isForced: force }),
      )
    } catch (error) {
      if (!(error instanceof KnownError) || error.code !== 'QUEUE_IN_USE') throw error
      const referring = await findReferringQueue(engine, queueName)
      const user = referring === undefined ? 'another queue' : `'${referring.name}'`
      throw createBadRequest(
        `queue is in use; '${queueName}' is the dead_queue of ${user}, change that queue first`,
      )
    }
    return undefined
  },
})

export const queuesRoutes = [create_, update, list, info, delete_]

function createExistsFault(name: string): KnownError {
  return createBadRequest(`invalid queue; '${name}' already exists`)
}

async function translateNotFound<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') throw createUnknownQueueFault(name)
    throw error
  }
}
