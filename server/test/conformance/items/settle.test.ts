import { describe, expect, it } from 'vitest'
import type { RetryRequest } from '../../../src/core/items/transitions.ts'
import type { NewItem } from '../../../src/storage/contract/items.ts'
import { aNewItem, hour, minute, newItems, noon, second, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

const unknownId = '0'.repeat(27)
const again: RetryRequest = { availableAt: null, isDead: false, error: null }

describeStores('settling', (given) => {
  const produce = async (queue: string, items: readonly NewItem[], partition = 0) =>
    (await given.run({ op: 'produce', queue, partition, items, now: noon })).ids
  const lease = async (queue: string, count: number, now = noon, partition = 0) => {
    const holders = Array.from({ length: count }, () => 'worker-1')
    const leased = await given.run({ op: 'lease', queue, partition, holders, now })
    return leased.map((item) => item.id)
  }
  const complete = async (queue: string, ids: readonly string[], now = noon, partition = 0) =>
    given.run({ op: 'complete', queue, partition, ids, now })
  const retry = async (
    queue: string,
    ids: readonly string[],
    how: Partial<RetryRequest> = {},
    now = noon,
    partition = 0,
  ) =>
    given.run({
      op: 'retry',
      queue,
      partition,
      items: ids.map((id) => ({ ...again, ...how, id })),
      now,
    })
  const extend = async (queue: string, ids: readonly string[], deadline: number, now = noon) =>
    given.run({ op: 'extend', queue, partition: 0, ids, deadline, now })
  const list = async (queue: string) => given.storage.listItems({ queue, countMax: 100 })

  describe('by complete', () => {
    it('complete removes the item and reports it', async () => {
      const queue = await given.queue()
      await produce(queue, newItems(2))
      const [id = ''] = await lease(queue, 1)
      expect(await complete(queue, [id])).toEqual({
        isSettled: true,
        changes: [
          {
            fromId: id,
            fromQueue: queue,
            fromPartition: 0,
            to: 'removed',
            cause: 'complete',
            id: null,
            queue,
            partition: 0,
            failure: null,
          },
        ],
      })
      expect(await list(queue)).toMatchObject([{ state: 'waiting' }])
      expect(await given.storage.readCounts({ queue })).toMatchObject([
        { waiting: 1, leased: 0, completed: 1 },
      ])
    })

    it('complete keeps the item as done if the queue keeps done items', async () => {
      const queue = await given.queue({ doneRetentionUs: hour })
      await produce(queue, newItems(1))
      const [id = ''] = await lease(queue, 1)
      const settled = await complete(queue, [id], noon + second)
      expect(settled).toMatchObject({ isSettled: true, changes: [{ to: 'done', cause: 'complete', id }] })
      const ended = { state: 'done', id, endedAt: noon + second, updatedAt: noon + second, attempts: 1 }
      expect(await list(queue)).toMatchObject([ended])
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ done: 1, leased: 0, completed: 0 }])
    })

    it('complete is all or nothing and reports why each id is refused', async () => {
      const queue = await given.queue({ partitions: 2, doneRetentionUs: hour })
      const [waiting = '', scheduled = ''] = await produce(queue, [
        aNewItem({ priority: -1 }),
        aNewItem({ availableAt: noon + hour }),
      ])
      const [elsewhere = ''] = await produce(queue, newItems(1), 1)
      await lease(queue, 1, noon, 1)
      await produce(queue, newItems(3))
      const [held = '', done = '', held2 = ''] = await lease(queue, 3)
      await complete(queue, [done])
      const before = await list(queue)

      const ids = [held, waiting, unknownId, scheduled, done, elsewhere, held2]
      const settled = await complete(queue, ids)
      expect(settled.isSettled).toBe(false)
      const refused = settled.isSettled ? [] : settled.refused
      expect(refused.toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id))).toEqual([
        { id: waiting, refusal: 'not-leased' },
        { id: unknownId, refusal: 'missing' },
        { id: scheduled, refusal: 'missing' },
        { id: done, refusal: 'missing' },
        { id: elsewhere, refusal: 'missing' },
      ])
      expect(await list(queue)).toEqual(before)
      expect((await complete(queue, [held, held2])).isSettled).toBe(true)
    })

    it('complete reports a repeated id as missing the second time', async () => {
      const queue = await given.queue()
      await produce(queue, newItems(1))
      const [id = ''] = await lease(queue, 1)
      expect(await complete(queue, [id, id])).toEqual({
        isSettled: false,
        refused: [{ id, refusal: 'missing' }],
      })
      expect(await retry(queue, [id, id])).toEqual({
        isSettled: false,
        refused: [{ id, refusal: 'missing' }],
      })
      expect((await complete(queue, [id])).isSettled).toBe(true)
    })

    it('complete reports an item that is dead in place as missing', async () => {
      const queue = await given.queue({ onDead: 'keep' })
      await produce(queue, newItems(1))
      const [id = ''] = await lease(queue, 1)
      await retry(queue, [id], { isDead: true })
      const refused = { isSettled: false, refused: [{ id, refusal: 'missing' }] }
      expect(await complete(queue, [id])).toEqual(refused)
      expect(await retry(queue, [id])).toEqual(refused)
      expect(await extend(queue, [id], noon + hour)).toEqual(refused)
    })

    it('complete is accepted after the deadline until the lease is ended', async () => {
      const queue = await given.queue({ leaseTimeoutUs: second })
      await produce(queue, newItems(1))
      const ids = await lease(queue, 1)
      expect((await complete(queue, ids, noon + hour)).isSettled).toBe(true)
    })

    it('complete is refused for the id that an item had before a retry', async () => {
      const queue = await given.queue({ leaseTimeoutUs: second })
      await produce(queue, newItems(1))
      const [id = ''] = await lease(queue, 1)
      await given.run({ op: 'advance', now: noon + minute, countMax: 10 })
      await lease(queue, 1, noon + minute)
      const refused = { isSettled: false, refused: [{ id, refusal: 'missing' }] }
      expect(await complete(queue, [id], noon + minute)).toEqual(refused)
    })

    it('complete without ids is accepted', async () => {
      const queue = await given.queue()
      expect(await complete(queue, [])).toEqual({ isSettled: true, changes: [] })
    })

    it('complete of 1,000 items reports each one in the order of the request', async () => {
      const queue = await given.queue()
      await produce(queue, newItems(1_000))
      const ids = (await lease(queue, 1_000)).toReversed()
      const settled = await complete(queue, ids)
      expect(settled.isSettled && settled.changes.map((change) => change.fromId)).toEqual(ids)
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ leased: 0, completed: 1_000 }])
    })
  })

  describe('by retry', () => {
    it('retry moves the item to the tail under a new id and changes nothing else', async () => {
      const queue = await given.queue()
      const ids = await produce(queue, newItems(3))
      const [before] = await list(queue)
      const [id = ''] = await lease(queue, 1)
      const settled = await retry(queue, [id], {}, noon + minute)
      expect(settled).toMatchObject({
        isSettled: true,
        changes: [{ fromId: id, to: 'waiting', cause: 'retry', queue, partition: 0 }],
      })
      const items = await list(queue)
      const last = items.at(-1)
      expect(items.map((item) => toText(item.payload))).toEqual(['item-1', 'item-2', 'item-0'])
      expect(last?.id).toBe(settled.isSettled ? settled.changes[0]?.id : 'refused')
      expect((last?.id ?? '') > (ids[2] ?? '')).toBe(true)
      const changed = { id: last?.id, attempts: 1, updatedAt: noon + minute, failure: last?.failure }
      expect(last).toEqual({ ...before, ...changed })
      expect(last?.rootId).toBe(ids[0])
    })

    it('retry returns many items in the order of the request', async () => {
      const queue = await given.queue()
      await produce(queue, newItems(3))
      const [a = '', b = '', c = ''] = await lease(queue, 3)
      await retry(queue, [b, c, a])
      expect((await list(queue)).map((item) => toText(item.payload))).toEqual(['item-1', 'item-2', 'item-0'])
    })

    it('retry can schedule an item, which then goes to the tail at its time', async () => {
      const queue = await given.queue()
      await produce(queue, newItems(2))
      const [id = ''] = await lease(queue, 1)
      const settled = await retry(queue, [id], { availableAt: noon + hour })
      expect(settled).toMatchObject({ isSettled: true, changes: [{ to: 'scheduled', cause: 'retry' }] })
      const scheduled = await given.storage.listItems({ queue, states: ['scheduled'], countMax: 10 })
      expect(scheduled).toMatchObject([{ state: 'waiting', availableAt: noon + hour, attempts: 1 }])
      expect(scheduled[0]?.id).toBe(settled.isSettled ? settled.changes[0]?.id : 'refused')
      expect(await lease(queue, 2)).toHaveLength(1)

      await produce(queue, newItems(1, 'later'))
      await given.run({ op: 'advance', now: noon + hour + 1, countMax: 10 })
      const payloads = async (state: 'waiting') =>
        (await given.storage.listItems({ queue, states: [state], countMax: 10 })).map((item) =>
          toText(item.payload),
        )
      // The lease of item-1 ended before the scheduled time of the others.
      expect((await payloads('waiting')).at(-1)).toBe('item-0')
    })

    it('retry records the first failure, the last failure and the error of the worker', async () => {
      const queue = await given.queue({ onDead: 'keep' })
      await produce(queue, newItems(1))
      const error = { errorCode: 'http_503', errorClass: 'Busy', message: 'try later', stack: 'at x' }
      const reported = { errorClass: 'Busy', message: 'try later', stack: 'at x', worker: 'worker-1' }
      const first = await lease(queue, 1)
      await retry(queue, first, { error }, noon + 1)
      expect((await list(queue))[0]?.failure).toEqual({
        ...reported,
        // The item has another id now, and its letter is found by this one.
        itemId: first[0],
        errorCode: 'http_503',
        attempts: 1,
        firstFailedAt: noon + 1,
        lastFailedAt: noon + 1,
      })
      // A retry without an error changes no failure field except the time.
      await retry(queue, await lease(queue, 1), {}, noon + 2)
      await retry(queue, await lease(queue, 1), { isDead: true }, noon + 3)
      expect((await list(queue))[0]?.failure).toEqual({
        ...reported,
        errorCode: 'declared_dead',
        attempts: 3,
        firstFailedAt: noon + 1,
        lastFailedAt: noon + 3,
      })
    })

    it('retry kills an item whose attempts exceed its own limit or that of the queue', async () => {
      const queue = await given.queue({ attemptsMax: 2, onDead: 'keep' })
      await produce(queue, [...newItems(1, 'lower', { attemptsMax: 1 }), ...newItems(1, 'the queue’s')])
      const first = await retry(queue, await lease(queue, 2))
      expect(first).toMatchObject({ changes: [{ to: 'waiting' }, { to: 'waiting' }] })
      const second = await retry(queue, await lease(queue, 2))
      expect(second.isSettled && second.changes.map((change) => [change.to, change.cause])).toEqual([
        ['dead', 'attempts'],
        ['waiting', 'retry'],
      ])
      const third = await retry(queue, await lease(queue, 2))
      expect(third).toMatchObject({ changes: [{ to: 'dead', cause: 'attempts' }] })
      expect(await list(queue)).toMatchObject([
        { state: 'dead', attempts: 2, failure: { errorCode: 'attempts' } },
        { state: 'dead', attempts: 3, failure: { errorCode: 'attempts' } },
      ])
    })

    it.each([
      ['a time of its own', noon + hour],
      ['the retry policy', undefined],
    ])('retry applies the attempt limit also when %s sets the next time', async (_, availableAt) => {
      const policy = { kind: 'fixed', delayUs: hour, jitter: 0 } as const
      const queue = await given.queue({ attemptsMax: 1, onDead: 'keep', retry: policy })
      await produce(queue, newItems(1))
      const first = await retry(queue, await lease(queue, 1), { availableAt })
      expect(first).toMatchObject({ changes: [{ to: 'scheduled', cause: 'retry' }] })
      expect(await list(queue)).toMatchObject([{ state: 'waiting', availableAt: noon + hour, attempts: 1 }])
      await given.run({ op: 'advance', now: noon + hour + 1, countMax: 10 })
      const held = await lease(queue, 1, noon + hour + 1)
      const second = await retry(
        queue,
        held,
        { availableAt: availableAt && noon + 2 * hour },
        noon + hour + 1,
      )
      expect(second).toMatchObject({ changes: [{ to: 'dead', cause: 'attempts' }] })
    })

    it('retry is all or nothing', async () => {
      const queue = await given.queue()
      const [, waiting = ''] = await produce(queue, newItems(2))
      const [held = ''] = await lease(queue, 1)
      const before = await list(queue)
      expect(await retry(queue, [held, waiting], { isDead: true })).toEqual({
        isSettled: false,
        refused: [{ id: waiting, refusal: 'not-leased' }],
      })
      expect(await list(queue)).toEqual(before)
    })

    it('one retry can have different outcomes for its items', async () => {
      const letters = await given.queue()
      const queue = await given.queue({ deadQueue: letters })
      await produce(queue, newItems(3))
      const [a = '', b = '', c = ''] = await lease(queue, 3)
      const settled = await given.run({
        op: 'retry',
        queue,
        partition: 0,
        items: [
          { ...again, id: a, isDead: true },
          { ...again, id: b },
          { ...again, id: c, availableAt: noon + hour },
        ],
        now: noon,
      })
      expect(settled.isSettled && settled.changes.map((change) => [change.to, change.queue])).toEqual([
        ['moved', letters],
        ['waiting', queue],
        ['scheduled', queue],
      ])
      const row = { waiting: 1, scheduled: 1, leased: 0, deadLettered: 1 }
      expect(await given.storage.readCounts({ queue })).toMatchObject([row])
    })
  })

  describe('by extend', () => {
    it('extend moves the deadline, and the lease no longer ends at the old one', async () => {
      const queue = await given.queue({ leaseTimeoutUs: minute })
      await produce(queue, newItems(2))
      const [id = '', other = ''] = await lease(queue, 2)
      const settled = await extend(queue, [id], noon + hour, noon + second)
      expect(settled).toMatchObject({
        isSettled: true,
        changes: [{ fromId: id, id, to: 'leased', cause: 'extend' }],
      })
      expect(await list(queue)).toMatchObject([
        { id, attempts: 1, lease: { holder: 'worker-1', deadline: noon + hour }, updatedAt: noon + second },
        { id: other, lease: { deadline: noon + minute } },
      ])
      const { changes } = await given.run({ op: 'advance', now: noon + 2 * minute, countMax: 10 })
      expect(changes.map((change) => change.fromId)).toEqual([other])
      expect(await given.storage.readNextDueAt()).toBe(noon + hour)
    })

    it('extend can also set an earlier deadline', async () => {
      const queue = await given.queue({ leaseTimeoutUs: hour })
      await produce(queue, newItems(1))
      const ids = await lease(queue, 1)
      await extend(queue, ids, noon + second)
      expect(await given.storage.readNextDueAt()).toBe(noon + second)
    })

    it('extend is all or nothing', async () => {
      const queue = await given.queue({ leaseTimeoutUs: minute })
      const [, waiting = ''] = await produce(queue, newItems(2))
      const [held = ''] = await lease(queue, 1)
      const before = await list(queue)
      const settled = await extend(queue, [held, waiting, unknownId], noon + hour)
      expect(settled).toEqual({
        isSettled: false,
        refused: [
          { id: waiting, refusal: 'not-leased' },
          { id: unknownId, refusal: 'missing' },
        ],
      })
      expect(await list(queue)).toEqual(before)
    })
  })
})
