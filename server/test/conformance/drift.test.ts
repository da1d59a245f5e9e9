import { expect, it } from 'vitest'
import { minute, newItems, noon } from '../make.ts'
import { expectRefusal } from './known-error.ts'
import { executeRaw } from './raw.ts'
import { describeDurableStores } from './stores.ts'

describeDurableStores('a count that is wrong', (given) => {
  const aDriftedQueue = async () => {
    const queue = await given.queue({ partitions: 2 })
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(5), now: noon })
    await given.run({ op: 'produce', queue, partition: 1, items: newItems(3), now: noon })
    await executeRaw(
      given.place.target,
      (schema) => `update ${schema}counts set waiting = waiting + 2 where partition = 1 and waiting > 0`,
    )
    return queue
  }

  it('is found and named, with what was counted and what is there', async () => {
    const queue = await aDriftedQueue()
    const differences = await given.storage.verify()
    expect(differences).toContainEqual({ queue, partition: 1, count: 'waiting', counted: 5, actual: 3 })
    expect(differences.filter((difference) => difference.partition === 0)).toEqual([])
    await given.storage.reconcile()
  })

  it('is set right, once, and reported as it was', async () => {
    const queue = await aDriftedQueue()
    expect(await given.storage.reconcile()).toContainEqual({
      queue,
      partition: 1,
      count: 'waiting',
      counted: 5,
      actual: 3,
    })
    expect(await given.storage.counts({ queue })).toMatchObject([
      { waiting: 5, accepted: 5 },
      { waiting: 3, accepted: 3 },
    ])
    expect(await given.storage.reconcile()).toEqual([])
  })

  it('is left alone by a server that lost the lock', async () => {
    const acquire = {
      op: 'acquire-lock',
      name: 'reconcile',
      owner: 'a',
      now: noon,
      deadline: noon + minute,
    } as const
    const lock = await given.run(acquire)
    if (lock === null) throw new Error('the lock was free')
    await given.run({ ...acquire, owner: 'b', now: noon + minute, deadline: noon + 2 * minute })
    await aDriftedQueue()
    const before = await given.storage.verify()
    await expectRefusal(given.storage.reconcile(lock), 'LOCK_LOST')
    expect(await given.storage.verify()).toEqual(before)
    await given.storage.reconcile()
  })

  it('because an item vanished is found, too', async () => {
    const queue = await given.queue()
    const items = newItems(4, 'item', { reference: 'vanishes' })
    await given.run({ op: 'produce', queue, partition: 0, items: [...items, ...newItems(1)], now: noon })
    await executeRaw(
      given.place.target,
      (schema) => `delete from ${schema}items where reference = 'vanishes'`,
    )
    const expected = { queue, partition: 0, count: 'waiting', counted: 5, actual: 1 }
    expect(await given.storage.verify()).toContainEqual(expected)
    expect(await given.storage.reconcile()).toContainEqual(expected)
    expect(await given.storage.counts({ queue })).toMatchObject([{ waiting: 1 }])
    // What was mended stays known: the counts alone would no longer tell that something is lost.
    const mended = await given.storage.listAudit({ target: queue, action: 'counts.mend', countMax: 9 })
    expect(mended.map(({ details }) => details)).toContainEqual({
      partition: 0,
      count: 'waiting',
      counted: 5,
      actual: 1,
    })
  })
})
