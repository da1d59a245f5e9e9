/** When the oldest open letter of each queue died. Reads one letter per queue from an index. */
import type { Instant } from '../../core/time/instant.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

const readsAtOnce = 8
const openStates = ['waiting', 'scheduled', 'dead'] as const
const bounds = { countMax: 1, examinedMax: 100, msMax: 1_000, bytes: 'head', round: 0 } as const

export async function readOldest(
  storage: Pick<StoreReads, 'findRanges'>,
  queues: readonly string[],
): Promise<readonly Readonly<{ queue: string; diedAt: Instant }>[]> {
  const found: { queue: string; diedAt: Instant }[] = []
  const read = async (queue: string): Promise<void> => {
    const filter = { queues: [queue], states: openStates }
    const ranges = await storage.findRanges({ filter, order: 'deadLetteredAt', isDescending: false })
    const [oldest] = (await ranges.scan(bounds)).found
    if (oldest !== undefined) found.push({ queue, diedAt: oldest.at })
  }
  for (let at = 0; at < queues.length; at += readsAtOnce)
    await Promise.all(queues.slice(at, at + readsAtOnce).map(read))
  return found
}
