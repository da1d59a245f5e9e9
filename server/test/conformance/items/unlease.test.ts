import { expect, it } from 'vitest'
import { aFailure, anOrigin, bytes, day, minute, newItems, noon, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('unlease', (given) => {
  const lease = (queue: string, count: number, now = noon) =>
    given.run({ op: 'lease', queue, partition: 0, holders: Array.from({ length: count }, () => 'w'), now })
  const unlease = (queue: string, ids: readonly string[]) =>
    given.run({ op: 'unlease', queue, partition: 0, ids, now: noon + 1 })

  it('unlease restores id, position, attempts and due time of the item', async () => {
    const queue = await given.queue({ expireTimeoutUs: day })
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(3), now: noon })
    const before = await given.storage.listItems({ queue, countMax: 3 })
    const leased = await lease(queue, 2)
    expect(
      await unlease(
        queue,
        leased.map(({ id }) => id),
      ),
    ).toEqual({ unleased: 2 })
    const after = await given.storage.listItems({ queue, countMax: 3 })
    expect(after.map((item) => ({ ...item, updatedAt: noon }))).toEqual(before)
    expect(await given.storage.readNextDueAt()).toBe(noon + day)
    const again = await lease(queue, 3)
    expect(again.map(({ payload, attempts }) => [toText(payload), attempts])).toEqual([
      ['item-0', 1],
      ['item-1', 1],
      ['item-2', 1],
    ])
  })

  it('unlease ignores ids that are unknown or no longer leased', async () => {
    const queue = await given.queue({ leaseTimeoutUs: minute })
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(2), now: noon })
    const [first, second] = await lease(queue, 2)
    const ids = [first?.id ?? '', second?.id ?? '']
    await given.run({ op: 'complete', queue, partition: 0, ids: ids.slice(0, 1), now: noon })
    expect(await unlease(queue, [...ids, ids[1] as string, 'nowhere'])).toEqual({ unleased: 1 })
    expect(await unlease(queue, ids)).toEqual({ unleased: 0 })
  })

  it('an unleased dead letter waits without a deadline', async () => {
    const queue = await given.queue()
    const letter = { payload: bytes('x'), sourceId: 's', origin: anOrigin(), failure: aFailure() }
    await given.run({ op: 'import', queue, partition: 0, items: [letter], now: noon })
    const [leased] = await lease(queue, 1)
    await unlease(queue, [leased?.id ?? ''])
    expect(await given.run({ op: 'advance', now: noon + 999 * day, countMax: 10 })).toMatchObject({
      changes: [],
    })
    expect(await lease(queue, 1)).toHaveLength(1)
  })
})
