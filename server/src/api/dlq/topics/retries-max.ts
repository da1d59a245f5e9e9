import { defaultPolicy } from '../../../core/items/queue.ts'
import type { ApiContext } from '../../context.ts'

/** Returns how many redrives each of these dead queues allows before a letter is DEAD. */
export async function readRetriesMax(
  context: Pick<ApiContext, 'engine'>,
  queues: Iterable<string>,
): Promise<(queue: string) => number> {
  const engine = context.engine()
  const found = await Promise.all([...new Set(queues)].map((name) => engine.getQueue(name)))
  const byName = new Map(found.flatMap((queue) => (queue === null ? [] : [[queue.name, queue]])))
  return (queue) => (byName.get(queue) ?? defaultPolicy).redrive.redrivesMax
}
