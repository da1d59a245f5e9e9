import type { Queue } from '../../../core/queue.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import { type Fault, badRequest } from '../protocol/fault.ts'
import { checkQueueName } from './names.ts'

/** The queue of that name, or the contract's refusal. */
export async function findQueue(engine: Engine, name: string): Promise<Queue> {
  checkQueueName(name)
  // No queue has a NUL in its name, and not every store could be asked for one.
  const queue = name.includes('\0') ? null : await engine.getQueue(name)
  if (queue === null) throw unknownQueueFault(name)
  return queue
}

export async function findPartition(engine: Engine, name: string, partition: number): Promise<Queue> {
  const queue = await findQueue(engine, name)
  if (partition < 0 || partition >= queue.partitions) throw wrongPartitionFault(partition)
  return queue
}

/**
 * Does `work` on a queue that is looked up only if something is wrong.
 *
 * The contract looks up first. The engine knows its queues, so a busy call does not ask the store for
 * one just to be told that it is there; when the call is refused for another reason, or by the engine,
 * the order of the contract is restored here.
 */
export async function runInQueue<T>(
  engine: Engine,
  place: Readonly<{ queueName: string; partition?: number }>,
  check: () => void,
  work: () => Promise<T>,
): Promise<T> {
  const { queueName, partition } = place
  checkQueueName(queueName)
  const lookUp = () =>
    partition === undefined ? findQueue(engine, queueName) : findPartition(engine, queueName, partition)
  if (queueName.includes('\0')) throw unknownQueueFault(queueName)
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
      if (error.code === 'QUEUE_NOT_FOUND') throw unknownQueueFault(queueName)
      if (error.code === 'PARTITION_NOT_FOUND') throw wrongPartitionFault(partition ?? 0)
    }
    throw error
  }
}

export function unknownQueueFault(name: string): Fault {
  return badRequest(`queue does not exist; no such queue named '${name}'`)
}

function wrongPartitionFault(partition: number): Fault {
  return badRequest(`partition is invalid; '${partition}' is not a valid partition`)
}
