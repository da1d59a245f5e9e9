import type { Queue } from '../../core/queue.ts'
import type { Storage } from '../../storage/contract/storage.ts'

/**
 * Whether letters are never sent there: others name it as their dead queue, or it has or had letters itself. Those
 * have groups, which nothing else has, and which stay as long as their queue. The stores refuse it by the same rule.
 */
export async function isDeadQueue(
  storage: Pick<Storage, 'listGroups'>,
  queues: Iterable<Queue>,
  name: string,
): Promise<boolean> {
  for (const { deadQueue } of queues) if (deadQueue === name) return true
  const groups = await storage.listGroups({ filter: { queues: [name] }, countMax: 1, isEmptyToo: true })
  return groups.length > 0
}
