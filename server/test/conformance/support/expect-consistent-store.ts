/**
 * Checks invariants that hold for every store at any time. Recounts everything itself, because `verify` is
 * under test, too.
 */
import { expect } from 'vitest'
import type { Item } from '../../../src/core/items/item.ts'
import type { PartitionCounts } from '../../../src/storage/contract/counts.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { verifyAudit } from '../../../src/storage/shared/audit/verify-audit.ts'
import { expectConsistentLetters } from './expect-consistent-letters.ts'
import { conservationGap, countGauges, listAll, listAllArchived } from './store-reads.ts'

export async function expectConsistentStore(storage: Storage): Promise<void> {
  expect(await storage.verify(), 'verify finds nothing').toEqual([])
  expect((await verifyAudit(storage)).faults, 'the audit log is intact').toEqual([])
  const counts = await storage.readCounts({})
  for (const row of counts) expect(conservationGap(row), `conservation in ${partitionName(row)}`).toBe(0)

  const all: Item[] = []
  for (const queue of await storage.listQueues({ countMax: 10_000 })) {
    const items = await listAll(storage, queue.name)
    for (const item of items) all.push(item)
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
      const { waiting, scheduled, leased, done, dead, discarded } = row
      const recounted = countGauges(items.filter((item) => item.partition === partition))
      const counted = { waiting, scheduled, leased, done, dead, discarded }
      expect(counted, `counts of ${partitionName(row)}`).toEqual(recounted)
    }
    const isInside = (item: Item): boolean => item.partition >= 0 && item.partition < queue.partitions
    expect(items.filter((item) => !isInside(item))).toEqual([])
  }
  await expectConsistentArchive(storage)
  await expectConsistentLetters(storage, all)
}

/** Runs after all items, so that no other read comes between the items and their counts. */
async function expectConsistentArchive(storage: Storage): Promise<void> {
  for (const { name } of await storage.listQueues({ countMax: 10_000 })) {
    const rows = await storage.readCounts({ queue: name })
    const archive = await listAllArchived(storage, name)
    const recounted = rows.map((row) => archive.filter((item) => item.partition === row.partition).length)
    expect(
      rows.map(({ archived }) => archived),
      `the archive of ${name}, by partition,`,
    ).toEqual(recounted)
  }
}

export function expectUnique(values: readonly string[], what: string): void {
  const seen = new Set<string>()
  const repeated = values.filter((value) => seen.size === seen.add(value).size)
  expect(repeated, `${what} that occur twice`).toEqual([])
}

function partitionName(row: PartitionCounts): string {
  return `${row.queue}/${row.partition}`
}
