import { expect, it } from 'vitest'
import type { NewItem } from '../../../src/storage/contract/items.ts'
import { stepBytesMax } from '../../../src/storage/shared/byte-budget.ts'
import { aNewItem, bytes, hour, minute, newItems, noon, second, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('leasing', (given) => {
  const produce = async (queue: string, items: readonly NewItem[], now = noon, partition = 0) =>
    (await given.run({ op: 'produce', queue, partition, items, now })).ids
  const lease = async (queue: string, holders: readonly string[], now = noon, partition = 0) =>
    given.run({ op: 'lease', queue, partition, holders, now })

  it('lease gives the oldest items first, item i to holder i', async () => {
    const queue = await given.queue()
    const ids = await produce(queue, newItems(3))
    const leased = await lease(queue, ['a', 'b'])
    expect(leased.map((item) => [item.id, item.lease.holder])).toEqual([
      [ids[0], 'a'],
      [ids[1], 'b'],
    ])
    expect((await lease(queue, ['c', 'd', 'e'])).map((item) => [item.id, item.lease.holder])).toEqual([
      [ids[2], 'c'],
    ])
    expect(await lease(queue, ['f'])).toEqual([])
  })

  it('a lease of large items stops at 16 MiB and gives at least one', async () => {
    const queue = await given.queue()
    const sizes = [17, 9, 9, 1, 9].map((megabytes) => megabytes * 2 ** 20)
    const ids = await produce(
      queue,
      sizes.map((size) => ({ payload: new Uint8Array(size) })),
    )
    const given5 = Array<string>(5).fill('w')
    const answers: string[][] = []
    for (let left = ids.length; left > 0; ) {
      const leased = await lease(queue, given5)
      expect(leased.slice(0, -1).reduce((sum, { payload }) => sum + payload.length, 0)).toBeLessThan(
        stepBytesMax,
      )
      expect(leased.length).toBeGreaterThan(0)
      answers.push(leased.map(({ id }) => id))
      left -= leased.length
    }
    expect(answers.flat()).toEqual(ids)
    expect(await lease(queue, given5)).toEqual([])
  })

  it('lease gives the highest priority first, then the oldest', async () => {
    const queue = await given.queue()
    const priorities = [0, 5, -5, 5, 0, 1_000_000, -5]
    await produce(
      queue,
      priorities.map((priority, index) => ({ payload: bytes(`${index}`), priority })),
    )
    const leased = await lease(
      queue,
      priorities.map(() => 'w'),
    )
    expect(leased.map((item) => toText(item.payload)).join('')).toBe('5130426')
  })

  it('lease counts the attempt and sets the deadline', async () => {
    const queue = await given.queue({ leaseTimeoutUs: 45 * second + 1 })
    await produce(queue, newItems(2))
    const leased = await lease(queue, ['a', 'b'], noon + minute)
    expect(leased).toMatchObject([
      {
        state: 'leased',
        attempts: 1,
        createdAt: noon,
        updatedAt: noon + minute,
        lease: { holder: 'a', deadline: noon + minute + 45 * second + 1 },
      },
      { attempts: 1, lease: { holder: 'b' } },
    ])
    expect(await given.storage.listItems({ queue, countMax: 10 })).toEqual(leased)
  })

  it('lease can give many items to one holder', async () => {
    const queue = await given.queue()
    await produce(queue, newItems(3))
    const leased = await lease(queue, ['w', 'w', 'w'])
    expect(leased.map((item) => item.lease.holder)).toEqual(['w', 'w', 'w'])
  })

  it('lease takes items of its partition only', async () => {
    const queue = await given.queue({ partitions: 2 })
    await produce(queue, newItems(1, 'zero'), noon, 0)
    await produce(queue, newItems(1, 'one'), noon, 1)
    const leased = await lease(queue, ['w', 'w'], noon, 1)
    expect(leased.map((item) => toText(item.payload))).toEqual(['one-0'])
  })

  it('a paused queue gives no leases until it is resumed', async () => {
    const queue = await given.queue()
    await produce(queue, newItems(1))
    await given.run({ op: 'update-queue', name: queue, changes: { isPaused: true }, now: noon })
    expect(await lease(queue, ['w'])).toEqual([])
    await given.run({ op: 'update-queue', name: queue, changes: { isPaused: false }, now: noon })
    expect(await lease(queue, ['w'])).toHaveLength(1)
  })

  it('a lease without holders gives nothing', async () => {
    const queue = await given.queue()
    await produce(queue, newItems(1))
    expect(await lease(queue, [])).toEqual([])
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ waiting: 1, leased: 0 }])
  })

  it('retried items are leased after items that were waiting', async () => {
    const queue = await given.queue()
    const ids = await produce(queue, newItems(2))
    await lease(queue, ['w'])
    const items = [{ id: ids[0] ?? '', availableAt: null, isDead: false, error: null }]
    await given.run({ op: 'retry', queue, partition: 0, items, now: noon + 1 })
    const leased = await lease(queue, ['w', 'w'], noon + 2)
    expect(leased.map((item) => [toText(item.payload), item.attempts])).toEqual([
      ['item-1', 1],
      ['item-0', 2],
    ])
  })

  it('lease gives 1,000 items at once, each to its holder', async () => {
    const queue = await given.queue()
    const ids = await produce(queue, newItems(1_500))
    const holders = Array.from({ length: 1_200 }, (_, index) => `worker-${index}`)
    const leased = await lease(queue, holders)
    expect(leased.map((item) => item.id)).toEqual(ids.slice(0, 1_200))
    expect(leased.map((item) => item.lease.holder)).toEqual(holders)
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ waiting: 300, leased: 1_200 }])
  })

  it('a dead letter is leased like any item', async () => {
    const letters = await given.queue({ leaseTimeoutUs: minute })
    const queue = await given.queue({ deadQueue: letters })
    const ids = await produce(queue, [aNewItem({ expireDeadline: noon + 1 })])
    await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
    const leased = await lease(letters, ['w'], noon + hour)
    expect(leased).toMatchObject([{ sourceId: ids[0], attempts: 1, state: 'leased' }])
  })
})
