import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { aNewItem, bytes, hour, minute, newItems, noon } from '../../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../../test/postgres.ts'
import type { Storage } from '../../contract/storage.ts'
import { vacuumLive } from '../connection/vacuum.ts'
import { leasedColumns } from './leased-row.ts'

const postgres = await requireService('postgres')
const at = { queue: 'orders', partition: 0 } as const

async function openWithQueue(database: TestDatabase): Promise<Storage> {
  const storage = await database.open()
  await run(storage, { op: 'create-queue', queue: { name: 'orders', leaseUs: minute }, now: noon })
  return storage
}

async function endsOf(database: TestDatabase): Promise<number> {
  return (await database.rows('select from redrive.lease_ends')).length
}

/** Everything that is due, however many passes that takes. */
async function advanceAll(storage: Storage, now: number): Promise<number> {
  let changed = 0
  for (let pass = 0; pass < 100; pass++) {
    const { changes, isMore } = await run(storage, { op: 'advance', now, countMax: 1_000 })
    changed += changes.length
    if (!isMore) return changed
  }
  throw new Error('there is always more')
}

describe('leasing', needs(postgres), () => {
  it('changes no column that an index of the live items names, or every lease would write into it', async () => {
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

  it('goes on where it ended, and still finds what another server put before that', async () => {
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

  it('takes first what came later with a higher priority', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(3), now: noon })
    await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon })
    await run(storage, { op: 'produce', ...at, items: [aNewItem({ priority: 5 })], now: noon })
    const next = await run(storage, { op: 'lease', ...at, holders: ['a', 'a'], now: noon })
    expect(next.map(({ priority }) => priority)).toEqual([5, 0])
  })
})

describe('a lease', needs(postgres), () => {
  it('brings back what an item rarely has, and nothing of it of an ordinary one', async () => {
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
    const rest = leasedColumns('t').slice(leasedColumns('t').indexOf('case when'))
    const [ordinary] = await database.rows(`select ${rest} from redrive.items_live t order by id limit 1`)
    expect(ordinary?.rest).toBeNull()
  })
})

describe('the ends of leases', needs(postgres), () => {
  it('are kept per batch, and forgotten when they have passed', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(10), now: noon })
    const leased = await run(storage, { op: 'lease', ...at, holders: Array(10).fill('a'), now: noon })
    expect(await endsOf(database)).toBe(1)
    expect(await storage.nextDueAt()).toBe(noon + minute)
    const ids = leased.slice(1).map(({ id }) => id)
    await run(storage, { op: 'complete', ...at, ids, now: noon })
    expect(await advanceAll(storage, noon + minute)).toBe(1)
    expect(await endsOf(database)).toBe(0)
  })

  it('of leases that were all settled announce nothing', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    const items = newItems(1, 'a', { expireDeadline: noon + hour })
    await run(storage, { op: 'produce', ...at, items, now: noon })
    const [leased] = await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon })
    await run(storage, { op: 'complete', ...at, ids: [leased?.id ?? ''], now: noon })
    expect(await storage.nextDueAt()).toBeNull()
  })

  it('follow an extension', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(1), now: noon })
    const [leased] = await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon })
    const ids = [leased?.id ?? '']
    await run(storage, { op: 'extend', ...at, ids, deadline: noon + hour, now: noon })
    expect(await advanceAll(storage, noon + minute)).toBe(0)
    expect(await storage.nextDueAt()).toBe(noon + hour)
    expect(await advanceAll(storage, noon + hour)).toBe(1)
  })

  it('end an item once, though two batches name it', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(2), now: noon })
    const lease = { op: 'lease', ...at, holders: ['a', 'a'], now: noon } as const
    const ids = (await run(storage, lease)).map(({ id }) => id)
    await run(storage, { op: 'unlease', ...at, ids: ids.slice(0, 1), now: noon })
    await run(storage, { ...lease, holders: ['b'] })
    await run(storage, { op: 'extend', ...at, ids: ids.slice(1), deadline: noon + 1, now: noon })
    expect(await advanceAll(storage, noon + minute)).toBe(2)
    expect(await endsOf(database)).toBe(0)
    expect(await storage.verify()).toEqual([])
  })

  it('are found behind hundreds of batches of which nothing is left', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(251), now: noon })
    for (let batch = 0; batch < 250; batch++) {
      const now = noon + batch
      const [leased] = await run(storage, { op: 'lease', ...at, holders: ['a'], now })
      await run(storage, { op: 'complete', ...at, ids: [leased?.id ?? ''], now })
    }
    await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon + 250 })
    expect(await endsOf(database)).toBe(251)
    expect(await advanceAll(storage, noon + minute + 250)).toBe(1)
    expect(await endsOf(database)).toBe(0)
    expect(await storage.verify()).toEqual([])
  })

  it('are not all looked up to say when the next one is', async () => {
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
    // The first 700 were enough. What comes after them ends no earlier.
    expect(await storage.nextDueAt()).toBe(noon + minute)
    expect(await advanceAll(storage, noon + minute)).toBe(0)
    expect(await storage.nextDueAt()).toBe(noon + minute + 1)
    expect(await advanceAll(storage, noon + minute + 1)).toBe(0)
    expect(await storage.nextDueAt()).toBe(noon + minute + 2)
    expect(await advanceAll(storage, noon + minute + 2)).toBe(1)
  })

  it('take no more room while leases come and go', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    const sizeOf = async () => {
      const [row] = await database.rows<{ kept: string; aside: string }>(
        `select pg_relation_size(oid) as kept, pg_relation_size(reltoastrelid) as aside
         from pg_class where oid = 'redrive.lease_ends'::regclass`,
      )
      return { kept: Number(row?.kept), aside: Number(row?.aside) }
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
    expect(first.aside).toBe(0)
  })

  it('go with their queue', async () => {
    await using database = await testDatabase()
    const storage = await openWithQueue(database)
    await run(storage, { op: 'produce', ...at, items: newItems(1), now: noon })
    await run(storage, { op: 'lease', ...at, holders: ['a'], now: noon })
    await run(storage, { op: 'delete-queue', name: 'orders' })
    expect(await endsOf(database)).toBe(0)
  })
})
