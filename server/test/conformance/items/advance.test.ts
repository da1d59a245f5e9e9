import { describe, expect, it } from 'vitest'
import type { NewItem } from '../../../src/storage/contract/items.ts'
import { aNewItem, day, hour, minute, newItems, noon, second, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('advance', (given) => {
  const produce = async (queue: string, items: readonly NewItem[], now = noon) =>
    (await given.run({ op: 'produce', queue, partition: 0, items, now })).ids
  const lease = async (queue: string, count: number, now = noon) => {
    const holders = Array.from({ length: count }, () => 'worker-1')
    return given.run({ op: 'lease', queue, partition: 0, holders, now })
  }
  const advance = async (now: number, countMax = 1_000) => given.run({ op: 'advance', now, countMax })
  const list = async (queue: string) => given.storage.listItems({ queue, countMax: 100 })

  it('advance does nothing if nothing is due', async () => {
    const queue = await given.queue()
    await produce(queue, newItems(2))
    const before = await list(queue)
    expect(await advance(noon)).toEqual({ changes: [], isMore: false })
    expect(await list(queue)).toEqual(before)
  })

  describe('ends leases', () => {
    it('a lease that ends moves the item to the tail under a new id, never before the deadline', async () => {
      const queue = await given.queue({ leaseTimeoutUs: minute })
      const ids = await produce(queue, newItems(3))
      const [leased] = await lease(queue, 1)
      expect((await advance(noon + minute - 1)).changes).toEqual([])
      expect(await list(queue)).toMatchObject([{ id: ids[0], state: 'leased' }, {}, {}])

      const { changes } = await advance(noon + minute + 1)
      const items = await list(queue)
      const last = items.at(-1)
      expect(changes).toMatchObject([
        {
          fromId: ids[0],
          fromQueue: queue,
          to: 'waiting',
          cause: 'lease-end',
          id: last?.id,
          queue,
          partition: 0,
        },
      ])
      expect(items.map((item) => toText(item.payload))).toEqual(['item-1', 'item-2', 'item-0'])
      const { expireDeadline = 0 } = leased ?? {}
      const kept = {
        rootId: ids[0],
        attempts: 1,
        createdAt: noon,
        updatedAt: noon + minute + 1,
        expireDeadline,
      }
      expect(last).toMatchObject({ ...kept, state: 'waiting', availableAt: null })
      expect((last?.id ?? '') > (ids[2] ?? '')).toBe(true)
    })

    it('the end of a lease is recorded as a failure of the item', async () => {
      const queue = await given.queue({ leaseTimeoutUs: minute })
      await produce(queue, newItems(1))
      await lease(queue, 1)
      await advance(noon + minute + 1)
      expect((await list(queue))[0]?.failure).toMatchObject({
        errorCode: 'lease_ended',
        worker: 'worker-1',
        attempts: 1,
        firstFailedAt: noon + minute + 1,
      })
    })

    it('an item without attempts left dies when its lease ends', async () => {
      const queue = await given.queue({ leaseTimeoutUs: minute, attemptsMax: 1 })
      const ids = await produce(queue, newItems(1))
      await lease(queue, 1)
      const { changes } = await advance(noon + minute + 1)
      expect(changes).toMatchObject([{ fromId: ids[0], to: 'removed', cause: 'attempts', id: null, queue }])
      expect(changes[0]?.failure).toMatchObject({ errorCode: 'attempts', worker: 'worker-1', attempts: 1 })
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ leased: 0, dropped: 1 }])
    })

    it('an item that expired during its lease dies when the lease ends', async () => {
      const queue = await given.queue({ leaseTimeoutUs: minute, onDead: 'keep' })
      const ids = await produce(queue, [aNewItem({ expireDeadline: noon + second })])
      await lease(queue, 1)
      // A leased item does not expire.
      expect((await advance(noon + 2 * second)).changes).toEqual([])
      const { changes } = await advance(noon + minute + 1)
      expect(changes).toMatchObject([{ fromId: ids[0], to: 'dead', cause: 'expire', id: ids[0] }])
    })

    it('leases of a paused queue end, too', async () => {
      const queue = await given.queue({ leaseTimeoutUs: minute })
      await produce(queue, newItems(1))
      await lease(queue, 1)
      await given.run({ op: 'update-queue', name: queue, changes: { isPaused: true }, now: noon })
      expect((await advance(noon + minute + 1)).changes).toMatchObject([{ cause: 'lease-end' }])
    })
  })

  describe('expires waiting items', () => {
    it('a waiting item expires at its deadline, never before', async () => {
      const queue = await given.queue({ expireTimeoutUs: hour })
      const ids = await produce(queue, newItems(1))
      expect((await advance(noon + hour - 1)).changes).toEqual([])
      const { changes } = await advance(noon + hour + 1)
      expect(changes).toEqual([
        {
          fromId: ids[0],
          fromQueue: queue,
          fromPartition: 0,
          to: 'removed',
          cause: 'expire',
          id: null,
          queue,
          partition: 0,
          failure: {
            errorCode: 'expired',
            errorClass: '',
            message: 'waited longer than its queue allows',
            stack: '',
            attempts: 0,
            firstFailedAt: noon + hour + 1,
            lastFailedAt: noon + hour + 1,
            worker: '',
          },
        },
      ])
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ waiting: 0, dropped: 1 }])
    })

    it('a scheduled item does not expire before it becomes available', async () => {
      const queue = await given.queue({ expireTimeoutUs: 5 * hour })
      const items = [
        aNewItem({ availableAt: noon + 2 * hour, expireDeadline: noon + hour }),
        aNewItem({ availableAt: noon + 2 * hour, expireDeadline: noon + 3 * hour }),
      ]
      await produce(queue, items)
      expect((await advance(noon + hour + 1)).changes).toEqual([])
      expect((await advance(noon + 2 * hour)).changes).toMatchObject([
        { cause: 'schedule' },
        { cause: 'schedule' },
      ])
      const deadlines = (await list(queue)).map((item) => item.expireDeadline)
      expect(deadlines).toEqual([noon + 7 * hour, noon + 3 * hour])
    })

    it('an expired item stays dead in place if the queue keeps dead items', async () => {
      const queue = await given.queue({ expireTimeoutUs: hour, onDead: 'keep' })
      const ids = await produce(queue, newItems(1))
      await advance(noon + day)
      expect(await list(queue)).toMatchObject([
        {
          id: ids[0],
          state: 'dead',
          endedAt: noon + day,
          deadLetteredAt: noon + day,
          failure: { errorCode: 'expired' },
        },
      ])
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ waiting: 0, dead: 1, dropped: 0 }])
      expect(await given.storage.readNextDueAt()).toBeNull()
      expect((await advance(noon + 10_000 * day)).changes).toEqual([])
    })
  })

  describe('makes scheduled items available', () => {
    it('a scheduled item becomes available at its time, at the tail under a new id', async () => {
      const queue = await given.queue()
      const [scheduled = ''] = await produce(queue, [aNewItem({ availableAt: noon + hour }), ...newItems(1)])
      expect((await advance(noon + hour - 1)).changes).toEqual([])
      await produce(queue, newItems(1, 'between'), noon + hour)
      const { changes } = await advance(noon + hour + 1)
      expect(changes).toMatchObject([{ fromId: scheduled, to: 'waiting', cause: 'schedule', queue }])
      const items = await list(queue)
      expect(items.at(-1)).toMatchObject({
        id: changes[0]?.id,
        rootId: scheduled,
        availableAt: null,
        attempts: 0,
      })
      const leased = await lease(queue, 3, noon + hour + 1)
      expect(leased.map((item) => toText(item.payload))).toEqual(['item-0', 'between-0', 'an order'])
    })

    it('items scheduled for the same time keep the order of production', async () => {
      const queue = await given.queue()
      await produce(queue, newItems(50, 'item', { availableAt: noon + hour }))
      while ((await advance(noon + hour + 1, 7)).isMore);
      const leased = await lease(queue, 50, noon + hour + 1)
      expect(leased.map((item) => toText(item.payload))).toEqual(
        newItems(50).map((item) => toText(item.payload)),
      )
    })

    it('overdue scheduled items become available in the order of their times', async () => {
      const queue = await given.queue()
      const hours = [3, 1, 2]
      await produce(
        queue,
        hours.map((count) => ({
          payload: new TextEncoder().encode(`${count}`),
          availableAt: noon + count * hour,
        })),
      )
      await advance(noon + day - 1)
      expect((await lease(queue, 3)).map((item) => toText(item.payload))).toEqual(['1', '2', '3'])
    })
  })

  describe('forgets done items', () => {
    it('done items are removed after their retention, never before', async () => {
      const queue = await given.queue({ doneRetentionUs: hour })
      const ids = await produce(queue, newItems(1))
      await lease(queue, 1)
      await given.run({ op: 'complete', queue, partition: 0, ids, now: noon + second })
      expect((await advance(noon + second + hour - 1)).changes).toEqual([])
      const { changes } = await advance(noon + second + hour + 1)
      expect(changes).toMatchObject([
        { fromId: ids[0], to: 'removed', cause: 'retention', id: null, failure: null },
      ])
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ done: 0, forgotten: 1 }])
    })
  })

  it('advance processes up to countMax items, earliest first, and reports that more is left', async () => {
    const queues = [await given.queue({ leaseTimeoutUs: 4 * hour }), await given.queue()]
    const [left = '', right = ''] = queues
    await produce(left, newItems(1, 'leased')) // due at 4 h
    await lease(left, 1)
    await produce(right, newItems(1, 'third', { availableAt: noon + 3 * hour }))
    await produce(left, newItems(1, 'first', { expireDeadline: noon + hour }))
    await produce(
      right,
      newItems(1, 'second', { availableAt: noon + 2 * hour, expireDeadline: noon + 5 * day }),
    )
    const seen: string[] = []
    for (let more = true; more && seen.length < 10; ) {
      const { changes, isMore } = await advance(noon + 5 * hour, 1)
      expect(changes.length).toBeLessThanOrEqual(1)
      seen.push(...changes.map((change) => change.cause))
      more = isMore
    }
    expect(seen).toEqual(['expire', 'schedule', 'schedule', 'lease-end'])
  })

  it('repeated advances process everything that is due', async () => {
    const letters = await given.queue({ partitions: 2 })
    const queue = await given.queue({ deadQueue: letters, leaseTimeoutUs: minute, attemptsMax: 1 })
    await produce(queue, newItems(120, 'expire', { expireDeadline: noon + hour }))
    await lease(queue, 40)
    await produce(queue, newItems(35, 'schedule', { availableAt: noon + minute }))
    const counted: Record<string, number> = {}
    for (let more = true; more; ) {
      const { changes, isMore } = await advance(noon + 2 * hour, 11)
      expect(changes.length).toBeLessThanOrEqual(11)
      for (const { cause } of changes) counted[cause] = (counted[cause] ?? 0) + 1
      more = isMore
    }
    expect(counted).toEqual({ attempts: 40, expire: 80, schedule: 35 })
    expect((await list(letters)).length).toBe(100)
    expect(await given.storage.readCounts({ queue })).toMatchObject([
      { waiting: 35, leased: 0, deadLettered: 120 },
    ])
  })

  describe('is announced by nextDueAt', () => {
    it('nextDueAt is null if nothing will become due', async () => {
      expect(await given.storage.readNextDueAt()).toBeNull()
      const queue = await given.queue({ onDead: 'keep' })
      await produce(queue, newItems(1))
      await lease(queue, 1)
      const [item] = await list(queue)
      const items = [{ id: item?.id ?? '', availableAt: null, isDead: true, error: null }]
      await given.run({ op: 'retry', queue, partition: 0, items, now: noon })
      expect(await given.storage.readNextDueAt()).toBeNull()
    })

    it('nextDueAt is the time at which advance has work, not earlier', async () => {
      const queue = await given.queue({ leaseTimeoutUs: minute, expireTimeoutUs: day, doneRetentionUs: hour })
      await produce(queue, [...newItems(2), aNewItem({ availableAt: noon + 10 * second })])
      await lease(queue, 1)
      const seen: string[] = []
      for (let step = 0; step < 3; step++) {
        const due = await given.storage.readNextDueAt()
        if (due === null) throw new Error('something is due')
        expect((await advance(due - 1)).changes).toEqual([])
        const { changes } = await advance(due)
        expect(changes.length).toBeGreaterThan(0)
        seen.push(...changes.map((change) => change.cause))
      }
      expect(seen).toEqual(['schedule', 'lease-end', 'expire', 'expire', 'expire'])
      expect(await given.storage.readNextDueAt()).toBeNull()
    })
  })
})
