import { expect, it } from 'vitest'
import { toRootId } from '../../../src/core/ids/ids.ts'
import { findKsuidProblem, readKsuidTime } from '../../../src/core/ids/ksuid.ts'
import type { NewItem } from '../../../src/storage/contract/items.ts'
import { aNewItem, anItem, bytes, hour, minute, newItems, noon, second, toText } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('producing', (given) => {
  const produce = async (queue: string, items: readonly NewItem[], now = noon, partition = 0) =>
    given.run({ op: 'produce', queue, partition, items, now })
  const list = async (queue: string) => given.storage.listItems({ queue, countMax: 100 })

  it('produced items get ids that contain their time, in the order of the request', async () => {
    const queue = await given.queue()
    const { ids } = await produce(queue, newItems(20))
    expect(ids.map(findKsuidProblem)).toEqual(ids.map(() => undefined))
    expect(ids.map(readKsuidTime)).toEqual(ids.map(() => noon))
    expect(ids).toEqual(ids.toSorted())
    const items = await list(queue)
    expect(items.map((item) => [item.id, toText(item.payload)])).toEqual(
      ids.map((id, index) => [id, `item-${index}`]),
    )
  })

  it('ids in a partition always grow, even if the clock stands still or moves back', async () => {
    const queue = await given.queue()
    const ids: string[] = []
    for (const now of [noon, noon, noon - hour, noon + 1, noon - 1]) {
      ids.push(...(await produce(queue, newItems(2), now)).ids)
    }
    expect(ids).toEqual(ids.toSorted())
    expect(new Set(ids).size).toBe(10)
  })

  it('an id is never reused, even if the newest item is gone', async () => {
    const queue = await given.queue()
    const first = await produce(queue, newItems(3))
    await given.run({ op: 'delete', queue, partition: 0, ids: first.ids })
    const second = await produce(queue, newItems(3), noon - minute)
    const ids = [...first.ids, ...second.ids]
    expect(ids).toEqual(ids.toSorted())
    expect(new Set(ids).size).toBe(6)
  })

  it('an id is never reused after a rejected write or a deleted queue clears the caches', async () => {
    const queue = await given.queue()
    const first = await produce(queue, newItems(3))
    await given.run({ op: 'delete', queue, partition: 0, ids: first.ids })
    await expectRefusal(produce('nowhere', newItems(1)), 'QUEUE_NOT_FOUND')
    await given.run({ op: 'delete-queue', name: await given.queue() })
    const { ids } = await produce(queue, newItems(1), noon - minute)
    expect((ids[0] ?? '') > (first.ids[2] ?? '')).toBe(true)
  })

  it('produce applies defaults for missing fields', async () => {
    const queue = await given.queue({ expireTimeoutUs: 3 * hour })
    const { ids } = await produce(queue, [{ payload: bytes('plain') }], noon + 7)
    const [id = ''] = ids
    const at = { createdAt: noon + 7, updatedAt: noon + 7, expireDeadline: noon + 7 + 3 * hour }
    expect(await list(queue)).toEqual([
      anItem({ id, rootId: toRootId(id), queue, payload: bytes('plain'), ...at }),
    ])
  })

  it('produce keeps every given field', async () => {
    const queue = await given.queue({ partitions: 3 })
    const item = {
      payload: bytes('{"order":7}'),
      kind: 'order',
      encoding: 'application/json',
      reference: 'shop/7',
      key: bytes('customer-7'),
      headers: [
        ['trace', bytes('abc')],
        ['empty', new Uint8Array()],
        ['absent', null],
      ],
      priority: -3,
      attemptsMax: 65_536,
      availableAt: noon + hour + 1,
      expireDeadline: noon + 2 * hour + 3,
      letterId: '0ujtsYcgvSTl8PAuAdqWYSMnLOv',
      retryCount: 4,
    } as const
    const { ids } = await produce(queue, [item], noon, 2)
    const [id = ''] = ids
    expect(await list(queue)).toEqual([anItem({ id, rootId: toRootId(id), queue, partition: 2, ...item })])
  })

  it('produce can store an item as already leased', async () => {
    const queue = await given.queue({ leaseTimeoutUs: 30 * second })
    const { ids, deadline } = await produce(queue, [
      aNewItem({ lease: { holder: 'worker-1' } }),
      aNewItem({ lease: { holder: 'worker-2' } }),
      aNewItem(),
    ])
    expect(deadline).toBe(noon + 30 * second)
    const items = await list(queue)
    expect(items).toMatchObject([
      { id: ids[0], state: 'leased', attempts: 1, lease: { holder: 'worker-1', deadline } },
      { id: ids[1], state: 'leased', attempts: 1, lease: { holder: 'worker-2', deadline } },
      { id: ids[2], state: 'waiting', attempts: 0, availableAt: null },
    ])
    const completed = await given.run({
      op: 'complete',
      queue,
      partition: 0,
      ids: ids.slice(0, 1),
      now: noon,
    })
    expect(completed.isSettled).toBe(true)
    const [next, none] = await given.storage.write([
      { op: 'lease', queue, partition: 0, holders: ['worker-3'], now: noon },
      { op: 'lease', queue, partition: 0, holders: ['worker-4'], now: noon },
    ])
    expect(next.map((item) => item.id)).toEqual(ids.slice(2))
    expect(none).toEqual([])
  })

  it('a scheduled item is not leased before its time', async () => {
    const queue = await given.queue()
    const { ids } = await produce(queue, [aNewItem({ availableAt: noon + hour }), aNewItem()])
    const leased = await given.run({ op: 'lease', queue, partition: 0, holders: ['w', 'w'], now: noon })
    expect(leased.map((item) => item.id)).toEqual([ids[1]])
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ waiting: 0, scheduled: 1, leased: 1 }])
  })

  it('produce counts accepted items per partition', async () => {
    const queue = await given.queue({ partitions: 2 })
    await produce(queue, newItems(3), noon, 0)
    await produce(queue, newItems(2), noon, 1)
    expect(await given.storage.readCounts({ queue })).toMatchObject([
      { partition: 0, accepted: 3, waiting: 3 },
      { partition: 1, accepted: 2, waiting: 2 },
    ])
  })

  it('produce accepts 10,000 items in one command', async () => {
    const queue = await given.queue()
    const { ids } = await produce(queue, newItems(10_000))
    expect(ids).toEqual(ids.toSorted())
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ accepted: 10_000, waiting: 10_000 }])
    const last = await given.storage.listItems({ queue, isDescending: true, countMax: 1 })
    expect(last.map((item) => [item.id, toText(item.payload)])).toEqual([[ids.at(-1), 'item-9999']])
  })

  it('produce without items changes nothing', async () => {
    const queue = await given.queue()
    expect((await produce(queue, [])).ids).toEqual([])
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ accepted: 0 }])
  })
})
