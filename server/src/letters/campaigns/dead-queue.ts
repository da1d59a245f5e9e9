import type { QueueName } from '../../core/ids/ids.ts'
import type { Queue } from '../../core/items/queue.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

/**
 * True if letters are never redriven to this queue: it is the dead queue of another queue, or holds or ever
 * held letters. Only letters have groups, and groups stay as long as their queue, so a group proves that a
 * queue has or had letters. The stores apply the same rule.
 */
export async function isDeadQueue(
  storage: Pick<StoreReads, 'listGroups'>,
  queues: Iterable<Queue>,
  name: QueueName,
): Promise<boolean> {
  for (const { deadQueue } of queues) if (deadQueue === name) return true
  const groups = await storage.listGroups({ filter: { queues: [name] }, countMax: 1, isEmptyToo: true })
  return groups.length > 0
}
