/** Reads of whole stores for checks. Free of the test runner, because started processes use them, too. */
import type { Item } from '../../../src/core/items/item.ts'
import type { Counts } from '../../../src/storage/contract/counts.ts'
import type { ItemsQuery } from '../../../src/storage/contract/items.ts'
import type { Command, ResultOf, Storage } from '../../../src/storage/contract/storage.ts'

/** Accepted items minus all items that are there or have left; 0 in a consistent store. */
export function conservationGap(counts: Counts): number {
  const { accepted, waiting, scheduled, leased, done, dead, discarded } = counts
  const { completed, deadLettered, dropped, deleted, forgotten, archived, purged } = counts
  const there = waiting + scheduled + leased + done + dead + discarded + archived
  const gone = completed + deadLettered + dropped + deleted + forgotten + purged
  return accepted - there - gone
}

/** All items of a queue, by id. */
export async function listAll(storage: Storage, queue: string): Promise<Item[]> {
  return readAllPages((query) => storage.listItems({ queue, ...query }))
}

/** All archived items of a queue, by id. */
export async function listAllArchived(storage: Storage, queue: string): Promise<Item[]> {
  return readAllPages(async (query) =>
    (await storage.listArchive({ queue, ...query })).map(({ item }) => item),
  )
}

async function readAllPages(
  read: (query: Pick<ItemsQuery, 'countMax' | 'from'>) => Promise<readonly Item[]>,
): Promise<Item[]> {
  const items: Item[] = []
  const countMax = 1_000
  for (;;) {
    const last = items.at(-1)
    const from = last === undefined ? {} : { from: { id: last.id, isIncluded: false } }
    const page = await read({ countMax, ...from })
    items.push(...page)
    if (page.length < countMax) return items
  }
}

export function countGauges(items: readonly Item[]): Pick<Counts, Gauge> {
  const gauges = { waiting: 0, scheduled: 0, leased: 0, done: 0, dead: 0, discarded: 0 }
  for (const item of items) gauges[toGauge(item)]++
  return gauges
}

export type Gauge = 'waiting' | 'scheduled' | 'leased' | 'done' | 'dead' | 'discarded'

export function toGauge(item: Item): Gauge {
  return item.state === 'waiting' && item.availableAt !== null ? 'scheduled' : item.state
}

/** Writes one command. */
export async function run<const C extends Command>(storage: Storage, command: C): Promise<ResultOf<C>> {
  const [result] = await storage.write([command] as const)
  return result as ResultOf<C>
}
