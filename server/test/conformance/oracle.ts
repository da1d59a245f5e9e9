/**
 * What must be true of any store at any time, whatever was done to it. Recounts everything by itself:
 * `verify` is among the things under test.
 */
import { expect } from 'vitest'
import type { Item } from '../../src/core/item.ts'
import type { Counts, PartitionCounts, Storage } from '../../src/storage/storage.ts'

export async function expectSound(storage: Storage): Promise<void> {
  expect(await storage.verify(), 'verify finds nothing').toEqual([])
  const counts = await storage.counts({})
  for (const row of counts) expect(conservationGap(row), `conservation in ${place(row)}`).toBe(0)

  for (const queue of await storage.listQueues({ countMax: 10_000 })) {
    const items = await listAll(storage, queue.name)
    expectUnique(
      items.map((item) => item.id),
      `ids of ${queue.name}`,
    )
    expectUnique(
      items.flatMap((item) => (item.sourceId === null ? [] : [item.sourceId])),
      `source ids of ${queue.name}`,
    )
    for (let partition = 0; partition < queue.partitions; partition++) {
      const row = counts.find((each) => each.queue === queue.name && each.partition === partition)
      expect(row, `counts of ${queue.name}/${partition}`).toBeDefined()
      if (row === undefined) continue
      const { waiting, scheduled, leased, done, dead } = row
      const recounted = gaugesOf(items.filter((item) => item.partition === partition))
      expect({ waiting, scheduled, leased, done, dead }, `counts of ${place(row)}`).toEqual(recounted)
    }
    const isInside = (item: Item): boolean => item.partition >= 0 && item.partition < queue.partitions
    expect(items.filter((item) => !isInside(item))).toEqual([])
  }
}

/** accepted − everything that became of what was accepted. */
export function conservationGap(counts: Counts): number {
  const { accepted, waiting, scheduled, leased, done, dead } = counts
  const { completed, deadLettered, dropped, deleted, forgotten, archived } = counts
  const there = waiting + scheduled + leased + done + dead
  const gone = completed + deadLettered + dropped + deleted + forgotten + archived
  return accepted - there - gone
}

/** Every item of a queue by id, page by page. */
export async function listAll(storage: Storage, queue: string): Promise<Item[]> {
  const items: Item[] = []
  const countMax = 1_000
  for (;;) {
    const last = items.at(-1)
    const from = last === undefined ? {} : { from: { id: last.id, isIncluded: false } }
    const page = await storage.listItems({ queue, countMax, ...from })
    items.push(...page)
    if (page.length < countMax) return items
  }
}

export function gaugesOf(items: readonly Item[]): Pick<Counts, Gauge> {
  const gauges = { waiting: 0, scheduled: 0, leased: 0, done: 0, dead: 0 }
  for (const item of items) gauges[gaugeOf(item)]++
  return gauges
}

type Gauge = 'waiting' | 'scheduled' | 'leased' | 'done' | 'dead'

export function gaugeOf(item: Item): Gauge {
  return item.state === 'waiting' && item.availableAt !== null ? 'scheduled' : item.state
}

export function expectUnique(values: readonly string[], what: string): void {
  const seen = new Set<string>()
  const repeated = values.filter((value) => seen.size === seen.add(value).size)
  expect(repeated, `${what} that occur twice`).toEqual([])
}

function place(row: PartitionCounts): string {
  return `${row.queue}/${row.partition}`
}
