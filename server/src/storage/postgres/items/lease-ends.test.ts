import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { aNewItem, bytes, hour, minute, newItems, noon } from '../../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../../test/postgres.ts'
import type { Storage } from '../../contract/storage.ts'
import { vacuumLive } from '../connection/vacuum.ts'
import { printLeasedColumns } from './leased-row.ts'

const postgres = await requireService('postgres')
const at = { queue: 'orders', partition: 0 } as const

async function openWithQueue(database: TestDatabase): Promise<Storage> {
  const storage = await database.open()
  await run(storage, { op: 'create-queue', queue: { name: 'orders', leaseTimeoutUs: minute }, now: noon })
  return storage
}

async function countEnds(database: TestDatabase): Promise<number> {
  return (await database.rows('select from redrive.lease_ends')).length
}

/** Advances until nothing more is due. Returns the number of changes. */
async function advanceAll(storage: Storage, now: number): Promise<number> {
  let changed = 0
  for (let pass = 0; pass < 100; pass++) {
    const { changes, isMore } = await run(storage, { op: 'advance', now, countMax: 1_000 })
    changed += changes.length
    if (!isMore) return changed
  }
  throw new Error('100 passes were not enough')
}

describe('leasing', needs(postgres), () => {
  it('a lease changes no column of an index of the live items, so that it writes no index', async () => {
    await using database = await testDatabase()
    await database.open()
    const indexes = await database.rows<{ indexdef: string }>(
      `select indexdef from pg_indexes where schemaname = 'redrive' and tablename = 'items_live'`,
    )
    expect(indexes.length).toBeGreaterThan(3)
    for (const { indexdef } of indexes) {
      expect(indexdef).not.toMatch(/\b(state|attempts|updated_at|lease_holder|lease_deadline)\b/)
    }
  })

  it('a lease continues at its cursor, and finds items that another server added before it', async () => {
    await using database = await testDatabase()
    const here = await openWithQueue(database)
    const there = await database.open()
    await run(here, { op: 'produce', ...at, items: newItems(4), now: noon })
    const [first] = await run(here, { op: 'lease', ...at, holders: ['a'], now: noon })
    await run(here, { op: 'lease', ...at, holders: ['a'], now: noon })
    await run(there, { op: 'unlease', ...at, ids: [first?.id ?? ''], now: noon })
    const rest = await run(here, { op: 'lease', ...at, holders: ['b', 'b', 'b', 'b'], now: noon })
    expect(rest).toHaveLength(3)
    expect(rest[0]?.id).toBe(first?.id)
    expect(await here.verify()).toEqual([])
  })

  it('an item with a higher priority that arrives later is leased first', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(3), now: noon })
    await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon })
    await run(storage, { op: 'produce', ...at, items: [aNewItem({ priority: 5 })], now: noon })
    const next = await run(storage, { op: 'lease', ...at, holders: ['a', 'a'], now: noon })
    expect(next.map(({ priority }) => priority)).toEqual([5, 0])
  })
})

describe('the row of a leased item', needs(postgres), () => {
  it('a lease returns the rare columns of an item, and null for an ordinary item', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    const odd = aNewItem({
      attemptsMax: 3,
      key: bytes('k\0\xff'),
      headers: [['h', bytes('\xfe')]],
      kind: 'k',
    })
    await run(storage, { op: 'produce', ...at, items: [aNewItem(), odd], now: noon })
    const leased = await run(storage, { op: 'lease', ...at, holders: ['a', 'a'], now: noon })
    const listed = await storage.listItems({ queue: 'orders', countMax: 2 })
    expect(leased).toEqual(listed)
    expect(leased[1]).toMatchObject({ attemptsMax: 3, key: odd.key, headers: odd.headers, kind: 'k' })
    const rare = printLeasedColumns('t').slice(printLeasedColumns('t').indexOf('case when'))
    const [ordinary] = await database.rows(`select ${rare} from redrive.items_live t order by id limit 1`)
    expect(ordinary?.rare).toBeNull()
  })
})

describe('the ends of leases', needs(postgres), () => {
  it('a batch of leases has one row with their end, which is deleted after the end', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(10), now: noon })
    const leased = await run(storage, { op: 'lease', ...at, holders: Array(10).fill('a'), now: noon })
    expect(await countEnds(database)).toBe(1)
    expect(await storage.readNextDueAt()).toBe(noon + minute)
    const ids = leased.slice(1).map(({ id }) => id)
    await run(storage, { op: 'complete', ...at, ids, now: noon })
    expect(await advanceAll(storage, noon + minute)).toBe(1)
    expect(await countEnds(database)).toBe(0)
  })

  it('the end of leases that are all settled is not a next due time', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    const items = newItems(1, 'a', { expireDeadline: noon + hour })
    await run(storage, { op: 'produce', ...at, items, now: noon })
    const [leased] = await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon })
    await run(storage, { op: 'complete', ...at, ids: [leased?.id ?? ''], now: noon })
    expect(await storage.readNextDueAt()).toBeNull()
  })

  it('an extended lease ends at its new deadline', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(1), now: noon })
    const [leased] = await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon })
    const ids = [leased?.id ?? '']
    await run(storage, { op: 'extend', ...at, ids, deadline: noon + hour, now: noon })
    expect(await advanceAll(storage, noon + minute)).toBe(0)
    expect(await storage.readNextDueAt()).toBe(noon + hour)
    expect(await advanceAll(storage, noon + hour)).toBe(1)
  })

  it('the lease of an item that two batches name ends once', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(2), now: noon })
    const lease = { op: 'lease', ...at, holders: ['a', 'a'], now: noon } as const
    const ids = (await run(storage, lease)).map(({ id }) => id)
    await run(storage, { op: 'unlease', ...at, ids: ids.slice(0, 1), now: noon })
    await run(storage, { ...lease, holders: ['b'] })
    await run(storage, { op: 'extend', ...at, ids: ids.slice(1), deadline: noon + 1, now: noon })
    expect(await advanceAll(storage, noon + minute)).toBe(2)
    expect(await countEnds(database)).toBe(0)
    expect(await storage.verify()).toEqual([])
  })

  it('an ended lease is found behind hundreds of batches without leases', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(251), now: noon })
    for (let batch = 0; batch < 250; batch++) {
      const now = noon + batch
      const [leased] = await run(storage, { op: 'lease', ...at, holders: ['a'], now })
      await run(storage, { op: 'complete', ...at, ids: [leased?.id ?? ''], now })
    }
    await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon + 250 })
    expect(await countEnds(database)).toBe(251)
    expect(await advanceAll(storage, noon + minute + 250)).toBe(1)
    expect(await countEnds(database)).toBe(0)
    expect(await storage.verify()).toEqual([])
  })

  it('the next due time is found without looking up all leases', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(1_401), now: noon })
    const leaseSome = (count: number, now: number) =>
      run(storage, { op: 'lease', ...at, holders: Array<string>(count).fill('a'), now })
    for (const second of [0, 1]) {
      const leased = await leaseSome(700, noon + second)
      await run(storage, { op: 'complete', ...at, ids: leased.map(({ id }) => id), now: noon })
    }
    await leaseSome(1, noon + 2)
    // The 700 leases of the first batch are enough: the leases after them end no earlier.
    expect(await storage.readNextDueAt()).toBe(noon + minute)
    expect(await advanceAll(storage, noon + minute)).toBe(0)
    expect(await storage.readNextDueAt()).toBe(noon + minute + 1)
    expect(await advanceAll(storage, noon + minute + 1)).toBe(0)
    expect(await storage.readNextDueAt()).toBe(noon + minute + 2)
    expect(await advanceAll(storage, noon + minute + 2)).toBe(1)
  })

  it('the table of lease ends does not grow while items are leased and completed', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    const sizeOf = async () => {
      const [row] = await database.rows<{ table: string; toast: string }>(
        `select pg_relation_size(oid) as "table", pg_relation_size(reltoastrelid) as toast
         from pg_class where oid = 'redrive.lease_ends'::regclass`,
      )
      return { table: Number(row?.table), toast: Number(row?.toast) }
    }
    const leaseAndComplete = async (now: number) => {
      await run(storage, { op: 'produce', ...at, items: newItems(1_280), now })
      for (let batch = 0; batch < 10; batch++) {
        const holders = Array<string>(128).fill('a')
        const leased = await run(storage, { op: 'lease', ...at, holders, now })
        await run(storage, { op: 'complete', ...at, ids: leased.map(({ id }) => id), now })
      }
      await advanceAll(storage, now + minute)
      await database.rows(vacuumLive.text)
    }
    await leaseAndComplete(noon)
    const first = await sizeOf()
    for (let round = 1; round < 5; round++) await leaseAndComplete(noon + round * hour)
    expect(await sizeOf()).toEqual(first)
    expect(first.toast).toBe(0)
  })

  it('the ends of leases are deleted with their queue', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(1), now: noon })
    await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon })
    await run(storage, { op: 'delete-queue', name: 'orders' })
    expect(await countEnds(database)).toBe(0)
  })
})
