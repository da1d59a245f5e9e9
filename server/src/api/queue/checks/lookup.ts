import type { Queue } from '../../../core/items/queue.ts'
import { isStorableText } from '../../../core/text/storable-text.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import { createBadRequest, type Fault } from '../protocol/fault.ts'
import { checkQueueName } from './names.ts'

/** Finds a queue, or throws the contract's error. */
export async function findQueue(engine: Engine, name: string): Promise<Queue> {
  checkQueueName(name)
  // No queue name contains a NUL character, and PostgreSQL cannot search for one.
  const queue = !isStorableText(name) ? null : await engine.getQueue(name)
  if (queue === null) throw createUnknownQueueFault(name)
  return queue
}

export async function findPartition(engine: Engine, name: string, partition: number): Promise<Queue> {
  const queue = await findQueue(engine, name)
  if (partition < 0 || partition >= queue.partitions) throw createWrongPartitionFault(partition)
  return queue
}

/**
 * Runs `work` on a queue, and looks up the queue only if a check fails.
 *
 * The contract looks up the queue first. The engine has its queues in memory, so a frequent call does not
 * need an extra read from the store. If a check or the engine refuses the call, this function restores the
 * contract's order: an unknown queue or partition is reported before any other error.
 */
export async function runInQueue<T>(
  engine: Engine,
  message: Readonly<{ queueName: string; partition?: number }>,
  check: () => void,
  work: () => Promise<T>,
): Promise<T> {
  const { queueName, partition } = message
  checkQueueName(queueName)
  const lookUp = () =>
    partition === undefined ? findQueue(engine, queueName) : findPartition(engine, queueName, partition)
  if (!isStorableText(queueName)) throw createUnknownQueueFault(queueName)
  try {
    check()
  } catch (error) {
    await lookUp()
    throw error
  }
  try {
    return await work()
  } catch (error) {
    if (error instanceof KnownError) {
      if (error.code === 'QUEUE_NOT_FOUND') throw createUnknownQueueFault(queueName)
      if (error.code === 'PARTITION_NOT_FOUND') throw createWrongPartitionFault(partition ?? 0)
    }
    throw error
  }
}

export function createUnknownQueueFault(name: string): Fault {
  return createBadRequest(`queue does not exist; no such queue named '${name}'`)
}

function createWrongPartitionFault(partition: number): Fault {
  return createBadRequest(`partition is invalid; '${partition}' is not a valid partition`)
}
