import { create } from '@bufbuild/protobuf'
import { partitionsMax } from '../../../core/queue.ts'
import { KnownError } from '../../../errors.ts'
import { readListLimit } from '../checks/list-limit.ts'
import { findQueue, unknownQueueFault } from '../checks/lookup.ts'
import { checkNamespaceName, checkNewQueueName, checkNoNul } from '../checks/names.ts'
import {
  QueueInfoSchema,
  QueuesDeleteRequestSchema,
  QueuesInfoRequestSchema,
  QueuesListRequestSchema,
  QueuesListResponseSchema,
} from '../generated/redrive/queue/v1/queue_pb.ts'
import { bodyBytesMax } from '../protocol/body-limits.ts'
import { createCodec } from '../protocol/codec.ts'
import { badRequest } from '../protocol/fault.ts'
import { queueRoute, createTrace } from '../protocol/queue-route.ts'
import { checkNamespaceExists, readNamespace } from './namespaces.ts'
import {
  checkDeadQueue,
  checkSyntax,
  checkMaxAttempts,
  checkReference,
  checkTimeouts,
  mergeTimeouts,
  translateRefusals,
  findReferringQueue,
} from './queue-definition.ts'
import { toQueueInfo } from './queue-info.ts'

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
    checkNamespaceExists(namespace)
    if ((await engine.getQueue(name)) !== null) throw alreadyExists(name)
    await checkDeadQueue(engine, info)
    checkReference(info)
    checkMaxAttempts(info)
    if (partitions < 1) throw badRequest('partitions is invalid; cannot be less than 1')
    if (partitions > partitionsMax)
      throw badRequest(`partitions is invalid; cannot be greater than ${partitionsMax}`)
    if (timeouts.leaseUs === 0) throw badRequest('lease timeout is invalid; cannot be empty')
    if (timeouts.expireUs === 0) throw badRequest('expire timeout is invalid; cannot be empty')
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
      await translateRefusals(engine, info, () => engine.createQueue(queue, createTrace(call)))
    } catch (error) {
      if (error instanceof KnownError && error.code === 'QUEUE_EXISTS') throw alreadyExists(name)
      throw error
    }
    return undefined
  },
})

const update = queueRoute({
  path: '/v1/queues.update',
  permission: 'queue.update',
  summary:
    'Changes a queue. Empty timeouts and partitions stay; max_attempts, reference and dead_queue are replaced.',
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
      // Only what was given: somebody else may be changing the other one.
      ...(given.leaseUs !== 0 && { leaseUs: timeouts.leaseUs }),
      ...(given.expireUs !== 0 && { expireUs: timeouts.expireUs }),
      attemptsMax: info.maxAttempts,
      deadQueue: info.deadQueue || null,
      reference: info.reference,
    }
    await translateNotFound(info.queueName, () =>
      translateRefusals(engine, info, () => engine.updateQueue(info.queueName, changes, createTrace(call))),
    )
    return undefined
  },
})

const list = queueRoute({
  path: '/v1/queues.list',
  permission: 'queue.list',
  summary: 'Queues of a namespace in byte order of name, from the pivot on.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(QueuesListRequestSchema),
  response: createCodec(QueuesListResponseSchema),
  handle: async ({ pivot, limit, namespace }, { engine }) => {
    const countMax = readListLimit(limit)
    if (pivot.includes('~')) throw badRequest(`pivot is invalid; '${pivot}' cannot contain '~' character`)
    checkNoNul('pivot', pivot)
    checkNamespaceName(namespace)
    const queues = await engine.listQueues({
      namespace: readNamespace(namespace),
      countMax,
      ...(pivot !== '' && { from: pivot }),
    })
    return create(QueuesListResponseSchema, { items: queues.map(toQueueInfo) })
  },
})

const info = queueRoute({
  path: '/v1/queues.info',
  permission: 'queue.stats',
  summary: 'One queue.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(QueuesInfoRequestSchema),
  response: createCodec(QueueInfoSchema),
  handle: async ({ queueName }, { engine }) => toQueueInfo(await findQueue(engine, queueName)),
})

const delete_ = queueRoute({
  path: '/v1/queues.delete',
  permission: 'queue.delete',
  summary:
    'Removes a queue and all its items for good; with force also one of class financial with open letters.',
  bodyBytesMax: bodyBytesMax.ids,
  request: createCodec(QueuesDeleteRequestSchema),
  handle: async ({ queueName, force }, call) => {
    const { engine } = call
    checkNewQueueName(queueName)
    try {
      await translateNotFound(queueName, () => engine.deleteQueue(queueName, createTrace(call), { isForced: force }))
    } catch (error) {
      if (!(error instanceof KnownError) || error.code !== 'QUEUE_IN_USE') throw error
      const user = await findReferringQueue(engine, queueName)
      const who = user === undefined ? 'another queue' : `'${user.name}'`
      throw badRequest(`queue is in use; '${queueName}' is the dead_queue of ${who}, change that queue first`)
    }
    return undefined
  },
})

export const queuesRoutes = [create_, update, list, info, delete_]

function alreadyExists(name: string): KnownError {
  return badRequest(`invalid queue; '${name}' already exists`)
}

async function translateNotFound<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') throw unknownQueueFault(name)
    throw error
  }
}
