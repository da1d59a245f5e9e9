/** The definition of a queue on the wire, and its checks in the contract's order and with its messages. */
import { create } from '@bufbuild/protobuf'
import type { Access } from '../../../access/access.ts'
import { type Queue, systemNamespace } from '../../../core/items/queue.ts'
import { formatDuration, parseFineDuration } from '../../../core/time/duration.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import {
  checkDeadQueueName,
  checkLength,
  checkNamespaceName,
  checkNewQueueName,
  checkNoNul,
} from '../checks/names.ts'
import { type QueueInfo, QueueInfoSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { createBadRequest } from '../protocol/fault.ts'
import { toTimestamp } from '../protocol/times.ts'

export function toQueueInfo(queue: Queue): QueueInfo {
  return create(QueueInfoSchema, {
    queueName: queue.name,
    createdAt: toTimestamp(queue.createdAt),
    updatedAt: toTimestamp(queue.updatedAt),
    deadQueue: queue.deadQueue ?? '',
    reference: queue.reference,
    leaseTimeout: formatDuration(queue.leaseTimeoutUs),
    expireTimeout: formatDuration(queue.expireTimeoutUs),
    maxAttempts: queue.attemptsMax,
    requestedPartitions: queue.partitions,
    namespace: queue.namespace,
  })
}

export function readNamespace(given: string): string {
  return given === '' ? systemNamespace : given
}

export async function checkNamespaceExists(access: Access, name: string): Promise<void> {
  if (name !== systemNamespace) await access.namespaces.get(name)
}

/** In microseconds; 0 if not given. */
export type Timeouts = Readonly<{ leaseTimeoutUs: number; expireTimeoutUs: number }>

/** The checks that need no lookup. Both calls begin with them. */
export function checkSyntax(info: QueueInfo): Timeouts {
  checkNewQueueName(info.queueName)
  checkLength('lease timeout', info.leaseTimeout, 15)
  checkLength('expire timeout', info.expireTimeout, 15)
  const expireTimeoutUs = parseTimeout('expire timeout', info.expireTimeout, '60m, 2h or 24h')
  const leaseTimeoutUs = parseTimeout('lease timeout', info.leaseTimeout, '8m, 15m or 1h')
  checkNamespaceName(info.namespace)
  return { leaseTimeoutUs, expireTimeoutUs }
}

export async function checkDeadQueue(engine: Engine, { queueName, deadQueue }: QueueInfo): Promise<void> {
  if (deadQueue === '') return
  checkDeadQueueName(deadQueue)
  if (deadQueue === queueName) throw createBadRequest('dead_queue cannot reference itself')
  const found = await engine.getQueue(deadQueue)
  if (found === null) {
    throw createBadRequest(`dead_queue does not exist; '${deadQueue}' was not found, create it first`)
  }
  if (found.deadQueue !== null) {
    throw createBadRequest(
      `dead_queue is invalid; '${deadQueue}' already has its own dead_queue configured; ` +
        'a dead queue cannot have its own dead_queue',
    )
  }
}

export function checkReference({ reference }: QueueInfo): void {
  if (Buffer.byteLength(reference) > 2_000) {
    throw createBadRequest("reference field is invalid; cannot be greater than '2000' characters")
  }
  checkNoNul('reference field', reference)
}

export function checkMaxAttempts({ maxAttempts }: QueueInfo): void {
  if (maxAttempts > 65_536) throw createBadRequest('max attempts is invalid; cannot be greater than 65536')
  if (maxAttempts < 0) throw createBadRequest('max attempts is invalid; cannot be negative number')
}

export function checkTimeouts({ leaseTimeoutUs, expireTimeoutUs }: Timeouts): void {
  if (leaseTimeoutUs < 0) throw createBadRequest('lease timeout is invalid; cannot be negative')
  if (expireTimeoutUs < 0) throw createBadRequest('expire timeout is invalid; cannot be negative')
  if (leaseTimeoutUs > expireTimeoutUs) {
    throw createBadRequest(
      `lease timeout is too long; ${formatDuration(leaseTimeoutUs)} cannot be greater than the expire timeout ${formatDuration(expireTimeoutUs)}`,
    )
  }
}

/** A timeout that is not given keeps its stored value. */
export function mergeTimeouts(given: Timeouts, queue: Queue): Timeouts {
  return {
    leaseTimeoutUs: given.leaseTimeoutUs || queue.leaseTimeoutUs,
    expireTimeoutUs: given.expireTimeoutUs || queue.expireTimeoutUs,
  }
}

/**
 * Runs `work` after the checks passed, and translates a refusal of the store. The store checks dead queues
 * and timeouts again in its transaction, because they can change after the checks.
 */
export async function translateRefusals<T>(
  engine: Engine,
  info: QueueInfo,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof KnownError)) throw error
    if (error.code === 'LEASE_TOO_LONG') await recheckTimeouts(engine, info)
    if (error.code !== 'DEAD_QUEUE_INVALID') throw error
    await checkDeadQueue(engine, info)
    throw createBadRequest(
      `dead_queue is invalid; '${info.queueName}' is itself a dead_queue and cannot have one of its own`,
    )
  }
}

/** Another request changed the other timeout: repeats the check with the stored value, which throws. */
async function recheckTimeouts(engine: Engine, info: QueueInfo): Promise<void> {
  const queue = await engine.getQueue(info.queueName)
  if (queue !== null) checkTimeouts(mergeTimeouts(checkSyntax(info), queue))
}

/** Finds a queue that uses this queue as its dead queue. */
export async function findReferringQueue(engine: Engine, deadQueue: string): Promise<Queue | undefined> {
  const countMax = 1_000
  for (let from = ''; ; ) {
    const page = await engine.listQueues({ from, countMax })
    const referring = page.find((queue) => queue.deadQueue === deadQueue)
    const last = page.at(-1)
    if (referring !== undefined || last === undefined || page.length < countMax) return referring
    // The next name in byte order.
    from = `${last.name}\u0001`
  }
}

function parseTimeout(what: string, text: string, examples: string): number {
  if (text === '') return 0
  try {
    return parseFineDuration(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw createBadRequest(`${what} is invalid; ${why} - expected format: ${examples}`)
  }
}
