import type { Queue } from '../../../core/items/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { ApiContext } from '../../context.ts'

export async function findQueue(name: string, context: ApiContext): Promise<Queue> {
  const queue = await context.storage().getQueue(name)
  if (queue === null) throw new KnownError('QUEUE_NOT_FOUND', `there is no queue named ${name}`)
  return queue
}
