import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { hour, minute, newItems, noon } from '../../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../../test/postgres.ts'
import type { SettleResult } from '../../contract/items.ts'
import type { Storage } from '../../contract/storage.ts'
import { completeInPlace } from './complete-plain.ts'
import { parseLocation, RowLocations } from './leased-row-locations.ts'

const postgres = await requireService('postgres')
const at = { queue: 'orders', partition: 0 } as const

async function openWithItems(database: TestDatabase, count: number): Promise<Storage> {
  const storage = await database.open()
  await run(storage, {
    op: 'create-queue',
    queue: { name: 'orders', leaseTimeoutUs: minute, partitions: 2 },
    now: noon,
  })
  await run(storage, { op: 'produce', ...at, items: newItems(count), now: noon })
  return storage
}

async function lease(storage: Storage, count: number, now = noon): Promise<string[]> {
  const items = await run(storage, { op: 'lease', ...at, holders: Array(count).fill('a'), now })
  return items.map(({ id }) => id)
}

const complete = (storage: Storage, ids: readonly string[], partition = 0): Promise<SettleResult> =>
  run(storage, { op: 'complete', queue: 'orders', partition, ids, now: noon })

describe('completing items at the locations of their leases', needs(postgres), () => {
  it('an item that another server returned to waiting is refused', async () => {
    await using database = await testDatabase()
    const here = await openWithItems(database, 2)
    const there = await database.open()
    const [first = '', second = ''] = await lease(here, 2)
    await run(there, { op: 'unlease', ...at, ids: [first], now: noon })
    expect(await complete(here, [first, second])).toEqual({
      isSettled: false,
      refused: [{ id: first, refusal: 'not-leased' }],
    })
    expect(await complete(here, [second])).toMatchObject({ isSettled: true })
    expect(await here.verify()).toEqual([])
  })

  it('an item whose row has moved is completed: extended, or leased again by another server', async () => {
    await using database = await testDatabase()
    const here = await openWithItems(database, 4)
    const there = await database.open()
    const [first = '', second = '', third = '', fourth = ''] = await lease(here, 4)
    const extend = { op: 'extend', ...at, deadline: noon + hour, now: noon } as const
    await run(here, { ...extend, ids: [first] })
    await run(there, { ...extend, ids: [second] })
    await run(there, { op: 'unlease', ...at, ids: [third], now: noon })
    expect(await lease(there, 1)).toEqual([third])
    expect(await complete(here, [first, second, third, fourth])).toMatchObject({ isSettled: true })
    expect(await database.rows('select from redrive.items_live')).toHaveLength(0)
    expect(await here.verify()).toEqual([])
  })

  it('another row that is at the location now is not changed', async () => {
    await using database = await testDatabase()
    const here = await openWithItems(database, 3)
    const ids = await lease(here, 3)
    const there = await database.open()
    await run(there, { op: 'delete', ...at, ids })
    await database.rows('vacuum redrive.items_live')
    await run(there, { op: 'produce', ...at, items: newItems(6), now: noon })
    await lease(there, 6)
    expect(await complete(here, ids)).toMatchObject({ isSettled: false })
    expect(await database.rows('select from redrive.items_live where state = 2')).toHaveLength(6)
    expect(await here.verify()).toEqual([])
  })

  it('items of several queues and in any order are completed by one statement', async () => {
    await using database = await testDatabase()
    const storage = await openWithItems(database, 200)
    await run(storage, { op: 'create-queue', queue: { name: 'bills', leaseTimeoutUs: minute }, now: noon })
    await run(storage, { op: 'produce', queue: 'bills', partition: 0, items: newItems(20), now: noon })
    await database.rows(`create table deletes (text text)`)
    await database.rows(`create function note_delete() returns trigger language plpgsql as $$
      begin insert into deletes values (current_query()); return null; end $$`)
    await database.rows(
      `create trigger note after delete on redrive.items_live execute function note_delete()`,
    )
    const bills = await run(storage, {
      op: 'lease',
      queue: 'bills',
      partition: 0,
      holders: Array(10).fill('b'),
      now: noon,
    })
    const orders = await lease(storage, 100)
    const ids = orders.toReversed()
    const settled = await storage.write([
      { op: 'complete', ...at, ids: ids.slice(0, 70), now: noon },
      { op: 'complete', queue: 'bills', partition: 0, ids: bills.map(({ id }) => id), now: noon },
      { op: 'complete', ...at, ids: ids.slice(70), now: noon },
    ])
    expect(settled.map(({ isSettled }) => isSettled)).toEqual([true, true, true])
    expect(await database.rows('select text = $1 as is_ours from deletes', [completeInPlace.text])).toEqual([
      { is_ours: true },
    ])
    expect(await database.rows('select id from redrive.items_live')).toHaveLength(110)
    expect(await storage.verify()).toEqual([])
  })

  it('an item of another partition is refused', async () => {
    await using database = await testDatabase()
    const storage = await openWithItems(database, 1)
    const [id = ''] = await lease(storage, 1)
    expect(await complete(storage, [id], 1)).toEqual({
      isSettled: false,
      refused: [{ id, refusal: 'missing' }],
    })
    expect(await complete(storage, [id])).toMatchObject({ isSettled: true })
  })
})

describe('row locations', () => {
  it('locations are returned once, and only if all of them are known', () => {
    const locations = new RowLocations()
    locations.set('a', parseLocation('(0,1)'))
    locations.set('b', parseLocation('(7,2)'))
    expect(locations.takeAll(['b', 'a'])).toEqual([parseLocation('(7,2)'), parseLocation('(0,1)')])
    locations.set('a', parseLocation('(0,3)'))
    expect(locations.takeAll(['a', 'b'])).toBeUndefined()
    expect(locations.takeAll(['a'])).toBeUndefined()
  })

  it('the oldest locations are dropped above the limit', () => {
    const locations = new RowLocations(2)
    for (const id of ['a', 'b', 'c']) locations.set(id, 1)
    expect(locations.takeAll(['a'])).toBeUndefined()
    expect(locations.takeAll(['b', 'c'])).toBeDefined()
  })

  it('locations have the order of the rows in the table', () => {
    const inOrder = ['(0,1)', '(0,226)', '(1,1)', '(9,3)', '(10,2)', '(4294967294,65535)']
    const locations = inOrder.map(parseLocation)
    expect(locations.toSorted((left, right) => left - right)).toEqual(locations)
    expect(new Set(locations).size).toBe(inOrder.length)
  })
})
