import { describe, expect, it } from 'vitest'
import type { Item } from '../../../src/core/items/item.ts'
import type { ItemOrder, ItemsQuery, ListedState } from '../../../src/storage/contract/items.ts'
import { anOrigin, bytes, hour, newItems, noon, second } from '../../make.ts'
import { seededNumbers } from '../../seeded-random.ts'
import { toGauge } from '../support/store-reads.ts'

import { describeStores } from '../support/test-stores.ts'

const orders: readonly ItemOrder[] = [
  'id',
  'createdAt',
  'updatedAt',
  'deadLetteredAt',
  'availableAt',
  'priority',
]

describeStores('listing items', (given) => {
  /** Items of every state with times and priorities that often tie. */
  const aFullQueue = async () => {
    const random = seededNumbers(7)
    const any = (count: number) => Math.floor(random() * count)
    const queue = await given.queue({
      partitions: 2,
      doneRetentionUs: hour,
      onDead: 'keep',
      leaseTimeoutUs: hour,
    })
    for (let round = 0; round < 12; round++) {
      const partition = any(2)
      const now = noon + any(3) * second
      const items = Array.from({ length: 5 }, (_, index) => ({
        payload: bytes(`${round}.${index}`),
        priority: any(3) - 1,
        availableAt: any(3) === 0 ? noon + hour + any(2) : null,
      }))
      await given.run({ op: 'produce', queue, partition, items, now })
      const leased = await given.run({
        op: 'lease',
        queue,
        partition,
        holders: ['a', 'b', 'c'],
        now: now + any(2),
      })
      const [toComplete, toRetry] = leased.map((item) => item.id)
      const at = { queue, partition, now: now + any(4) } as const
      if (toComplete !== undefined) await given.run({ op: 'complete', ids: [toComplete], ...at })
      if (toRetry !== undefined) {
        const back = { id: toRetry, availableAt: null, isDead: any(3) > 0, error: null }
        await given.run({ op: 'retry', items: [back], ...at })
      }
    }
    const items = await given.storage.listItems({ queue, countMax: 1_000 })
    for (const state of ['waiting', 'scheduled', 'leased', 'done', 'dead']) {
      expect(items.filter((item) => toGauge(item) === state).length, state).toBeGreaterThan(3)
    }
    return { queue, items }
  }

  const placeValue = (item: Item, order: ItemOrder): number | string | null => {
    if (order === 'availableAt') return item.state === 'waiting' ? item.availableAt : null
    return item[order]
  }
  /** The order that the contract requires, computed in memory. */
  const sorted = (items: readonly Item[], order: ItemOrder, isDescending: boolean): Item[] => {
    const compare = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0)
    const ascending = items
      .filter((item) => placeValue(item, order) !== null)
      .toSorted(
        (a, b) => compare(placeValue(a, order) ?? 0, placeValue(b, order) ?? 0) || compare(a.id, b.id),
      )
    return isDescending ? ascending.toReversed() : ascending
  }
  const cursorAt = (item: Item, order: ItemOrder, isIncluded: boolean) => {
    const value = placeValue(item, order)
    return { id: item.id, isIncluded, ...(typeof value === 'number' && { value }) }
  }

  describe.each(orders)('by %s', (order) => {
    it.each([false, true])('pages return each item once (descending: %s)', async (isDescending) => {
      const { queue, items } = await aFullQueue()
      const expected = sorted(items, order, isDescending)
      expect(expected.length).toBeGreaterThan(5)
      const query: ItemsQuery = { queue, order, isDescending, countMax: 4 }
      const listed: Item[] = []
      for (let last: Item | undefined; ; last = listed.at(-1)) {
        const from = last === undefined ? {} : { from: cursorAt(last, order, false) }
        const page = await given.storage.listItems({ ...query, ...from })
        listed.push(...page)
        if (page.length < 4) break
      }
      expect(listed).toEqual(expected)
    })

    it('a page starts at the cursor, inclusive or exclusive', async () => {
      const { queue, items } = await aFullQueue()
      const expected = sorted(items, order, false)
      const pivot = expected[2]
      if (pivot === undefined) throw new Error('there are more')
      for (const isIncluded of [true, false]) {
        const from = cursorAt(pivot, order, isIncluded)
        const page = await given.storage.listItems({ queue, order, from, countMax: 3 })
        expect(page).toEqual(expected.slice(isIncluded ? 2 : 3).slice(0, 3))
      }
    })
  })

  it('items are listed by ascending id by default', async () => {
    const { queue, items } = await aFullQueue()
    expect(items.map((item) => item.id)).toEqual(items.map((item) => item.id).toSorted())
    expect(await given.storage.listItems({ queue, countMax: 1_000 })).toEqual(items)
  })

  it('a cursor between items is accepted', async () => {
    const { queue, items } = await aFullQueue()
    const middle = items[10]
    if (middle === undefined) throw new Error('there are more')
    const from = { id: `${middle.id.slice(0, 26)}!`, isIncluded: true }
    // `!` sorts before every digit of an id, so this cursor is just before the item.
    expect((await given.storage.listItems({ queue, from, countMax: 1 }))[0]?.id).toBe(middle.id)
  })

  it.each<readonly ListedState[]>([
    ['waiting'],
    ['scheduled'],
    ['leased'],
    ['done'],
    ['dead'],
    ['waiting', 'leased'],
    ['scheduled', 'done', 'dead'],
    [],
  ])('a list shows the requested states: %s %s %s', async (...states) => {
    const { queue, items } = await aFullQueue()
    const expected = items.filter((item) => states.length === 0 || states.includes(toGauge(item)))
    for (const order of orders) {
      const query = { queue, states, order, countMax: 1_000 }
      expect(await given.storage.listItems(query), order).toEqual(sorted(expected, order, false))
    }
  })

  it('a list can be limited to one partition', async () => {
    const { queue, items } = await aFullQueue()
    for (const partition of [0, 1]) {
      const expected = items.filter((item) => item.partition === partition)
      expect(await given.storage.listItems({ queue, partition, countMax: 1_000 })).toEqual(expected)
    }
  })

  it('a list can be limited to ids, in the requested order', async () => {
    const { queue, items } = await aFullQueue()
    const some = items.filter((_, index) => index % 5 === 0)
    const ids = [...some.map((item) => item.id), '0'.repeat(27)].toReversed()
    const byId = { queue, ids, order: 'priority', countMax: 1_000 } as const
    expect(await given.storage.listItems(byId)).toEqual(sorted(some, 'priority', false))
    expect(await given.storage.listItems({ ...byId, countMax: 2 })).toEqual(
      sorted(some, 'priority', false).slice(0, 2),
    )

    expect(await given.storage.listItems({ queue, ids: [], countMax: 1_000 })).toEqual([])
  })

  it('letters are listed by their root id, whatever their current id is', async () => {
    const queue = await given.queue()
    const letters = ['a', 'b', 'c'].map((sourceId) => ({
      payload: bytes(sourceId),
      sourceId,
      origin: anOrigin(),
    }))
    const imported = await given.run({ op: 'import', queue, partition: 0, items: letters, now: noon })
    const rootIds = imported.map((row) => row.id ?? '')
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    const back = { id: rootIds[0] ?? '', availableAt: null, isDead: false, error: null }
    await given.run({ op: 'retry', queue, partition: 0, items: [back], now: noon })
    const find = async (query: object) =>
      (await given.storage.listItems({ queue, countMax: 10, ...query })).map((item) => item.sourceId)
    expect(await find({ rootIds: rootIds.slice(0, 2) })).toEqual(['b', 'a'])
    expect(await find({ rootIds: rootIds.slice(0, 2), countMax: 1 })).toEqual(['b'])
    expect(await find({ ids: rootIds.slice(0, 2) })).toEqual(['b'])
    expect(await find({ rootIds: [] })).toEqual([])
  })

  it('a list accepts 1,000 ids', async () => {
    const queue = await given.queue()
    const items = newItems(1_000)
    const { ids } = await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
    expect(await given.storage.listItems({ queue, ids, countMax: 1_000 })).toHaveLength(1_000)
  })

  it('partition, states, order, direction and cursor can be combined', async () => {
    const { queue, items } = await aFullQueue()
    const states = ['waiting', 'dead'] as const
    const some = items.filter(
      (item) => item.partition === 1 && states.some((state) => state === toGauge(item)),
    )
    const expected = sorted(some, 'updatedAt', true)
    const pivot = expected[1]
    if (pivot === undefined) throw new Error('there are more')
    const query = {
      queue,
      partition: 1,
      states,
      order: 'updatedAt',
      isDescending: true,
      countMax: 1_000,
    } as const
    const from = cursorAt(pivot, 'updatedAt', false)
    expect(await given.storage.listItems({ ...query, from })).toEqual(expected.slice(2))
  })

  it('a list shows only the requested queue', async () => {
    const [queue, other] = [await given.queue(), await given.queue()]
    await given.run({ op: 'produce', queue: other, partition: 0, items: newItems(3), now: noon })
    expect(await given.storage.listItems({ queue, countMax: 10 })).toEqual([])
  })

  it('a list ends with the item that reaches the limit of bytes, and continues behind it', async () => {
    const queue = await given.queue()
    const items = [100, 400, 600, 100, 5_000, 1].map((size) => ({ payload: bytes('x'.repeat(size)) }))
    await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
    const sizes: number[][] = []
    for (let from: ItemsQuery['from']; ; ) {
      const page = await given.storage.listItems({
        queue,
        partition: 0,
        countMax: 10,
        // Ids and other texts count in SQLite, too.
        bytesMax: 1_000,
        ...(from !== undefined && { from }),
      })
      const last = page.at(-1)
      if (last === undefined) break
      sizes.push(page.map(({ payload }) => payload.length))
      from = { id: last.id, isIncluded: false }
    }
    expect(sizes.flat()).toEqual([100, 400, 600, 100, 5_000, 1])
    expect(sizes.slice(1)).toEqual([[100, 5_000], [1]])
    const tiny = await given.storage.listItems({ queue, countMax: 10, bytesMax: 1 })
    expect(tiny).toHaveLength(1)
  })

  it('a list without bytes has the items with empty payloads', async () => {
    const queue = await given.queue()
    const items = [{ payload: bytes('payload'), key: bytes('key'), kind: 'kind' }]
    await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
    const [item] = await given.storage.listItems({ queue, countMax: 10, hasBytes: false })
    expect(item).toMatchObject({ kind: 'kind', key: null, payload: bytes('') })
  })
})
