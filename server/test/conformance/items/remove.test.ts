import { describe, expect, it } from 'vitest'
import type { Clear, NewItem } from '../../../src/storage/contract/items.ts'
import { bytes, hour, newItems, noon, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('removing', (given) => {
  const produce = async (queue: string, items: readonly NewItem[], partition = 0) =>
    (await given.run({ op: 'produce', queue, partition, items, now: noon })).ids
  const list = async (queue: string) => given.storage.listItems({ queue, countMax: 100 })

  /** One item of each state, named after it. */
  const oneOfEach = async (partitions = 1) => {
    const queue = await given.queue({ doneRetentionUs: hour, onDead: 'keep', partitions })
    const [dead = '', done = ''] = await produce(queue, newItems(1, 'dead').concat(newItems(2, 'done')))
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w', 'w', 'w'], now: noon })
    const items = [{ id: dead, availableAt: null, isDead: true, error: null }]
    await given.run({ op: 'retry', queue, partition: 0, items, now: noon })
    await given.run({ op: 'complete', queue, partition: 0, ids: [done], now: noon })
    await produce(queue, [
      ...newItems(1, 'waiting'),
      ...newItems(1, 'scheduled', { availableAt: noon + hour }),
    ])
    const states = (await list(queue)).map((item) => [item.state, item.id] as const)
    expect(states.map(([state]) => state)).toEqual(['dead', 'done', 'leased', 'waiting', 'waiting'])
    return { queue, ids: states.map(([, id]) => id) }
  }

  describe('by id', () => {
    it('delete removes items in any state and counts them as deleted', async () => {
      const { queue, ids } = await oneOfEach()
      expect(await given.run({ op: 'delete', queue, partition: 0, ids })).toEqual({
        removed: 5,
        discarded: 0,
        next: null,
      })
      expect(await list(queue)).toEqual([])
      const zero = { waiting: 0, scheduled: 0, leased: 0, done: 0, dead: 0 }
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ ...zero, accepted: 5, deleted: 5 }])
      expect(await given.storage.readNextDueAt()).toBeNull()
    })

    it('delete ignores unknown and repeated ids and ids of other partitions', async () => {
      const queue = await given.queue({ partitions: 2 })
      const [here = ''] = await produce(queue, newItems(1), 0)
      const [there = ''] = await produce(queue, newItems(1), 1)
      const ids = [here, '0'.repeat(27), here, there, 'not an id']
      expect(await given.run({ op: 'delete', queue, partition: 0, ids })).toEqual({
        removed: 1,
        discarded: 0,
        next: null,
      })
      expect((await list(queue)).map((item) => item.id)).toEqual([there])
      expect(await given.run({ op: 'delete', queue, partition: 0, ids: [] })).toEqual({
        removed: 0,
        discarded: 0,
        next: null,
      })
    })

    it('delete stops at 16 MiB, lowest ids first, and names the id to continue after', async () => {
      const queue = await given.queue()
      const large = new Uint8Array(9 * 2 ** 20)
      const ids = await produce(
        queue,
        [large, large, bytes('a')].map((payload) => ({ payload })),
      )
      const command = { op: 'delete', queue, partition: 0, ids: ids.toReversed() } as const
      expect(await given.run(command)).toEqual({ removed: 2, discarded: 0, next: ids[1] })
      expect(await given.run(command)).toEqual({ removed: 1, discarded: 0, next: null })
    })

    it('delete removes 10,000 items in one command', async () => {
      const queue = await given.queue()
      const ids = await produce(queue, newItems(10_000))
      expect(await given.run({ op: 'delete', queue, partition: 0, ids })).toEqual({
        removed: 10_000,
        discarded: 0,
        next: null,
      })
    })
  })

  describe('by clearing', () => {
    const clear = async (queue: string, what: Partial<Clear>) => {
      const nothing = { isWaiting: false, isScheduled: false, isLeased: false, countMax: 1_000 }
      return given.run({ op: 'clear', queue, ...nothing, ...what })
    }
    const namesIn = async (queue: string) => (await list(queue)).map((item) => toText(item.payload))

    it.each([
      [{ isWaiting: true }, ['dead-0', 'done-0', 'done-1', 'scheduled-0']],
      [{ isScheduled: true }, ['dead-0', 'done-0', 'done-1', 'waiting-0']],
      [{ isLeased: true }, ['dead-0', 'done-0', 'waiting-0', 'scheduled-0']],
      [{ isWaiting: true, isScheduled: true, isLeased: true }, ['dead-0', 'done-0']],
      [{}, ['dead-0', 'done-0', 'done-1', 'waiting-0', 'scheduled-0']],
    ])('clear removes the requested states %o and never done or dead items', async (what, left) => {
      const { queue } = await oneOfEach()
      expect(await clear(queue, what)).toEqual({ removed: 5 - left.length, discarded: 0, next: null })
      expect(await namesIn(queue)).toEqual(left)
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ deleted: 5 - left.length }])
    })

    it('clear removes up to countMax items, lowest ids first', async () => {
      const queue = await given.queue()
      await produce(queue, newItems(5))
      expect(await clear(queue, { isWaiting: true, countMax: 2 })).toEqual({
        removed: 2,
        discarded: 0,
        next: expect.any(String),
      })
      expect(await namesIn(queue)).toEqual(['item-2', 'item-3', 'item-4'])
      expect(await clear(queue, { isWaiting: true, countMax: 2 })).toEqual({
        removed: 2,
        discarded: 0,
        next: expect.any(String),
      })
      expect(await clear(queue, { isWaiting: true, countMax: 2 })).toEqual({
        removed: 1,
        discarded: 0,
        next: null,
      })
      expect(await clear(queue, { isWaiting: true, countMax: 2 })).toEqual({
        removed: 0,
        discarded: 0,
        next: null,
      })
    })

    it('clear stops at 16 MiB and reports that more is left', async () => {
      const queue = await given.queue()
      const large = new Uint8Array(9 * 2 ** 20)
      await produce(
        queue,
        [large, large, bytes('a'), large].map((payload) => ({ payload })),
      )
      expect(await clear(queue, { isWaiting: true })).toEqual({
        removed: 2,
        discarded: 0,
        next: expect.any(String),
      })
      expect(await clear(queue, { isWaiting: true })).toEqual({ removed: 2, discarded: 0, next: null })
    })

    it('clear goes by id across all partitions', async () => {
      const queue = await given.queue({ partitions: 3 })
      for (const [order, partition] of [2, 0, 1, 2, 0].entries()) {
        const items = newItems(1, `${order}`)
        await given.run({ op: 'produce', queue, partition, items, now: noon + order })
      }
      expect(await clear(queue, { isWaiting: true, countMax: 3 })).toEqual({
        removed: 3,
        discarded: 0,
        next: expect.any(String),
      })
      expect(await namesIn(queue)).toEqual(['3-0', '4-0'])
    })

    it('clear can be limited to one partition', async () => {
      const queue = await given.queue({ partitions: 3 })
      for (const partition of [0, 1, 2]) await produce(queue, newItems(2, `p${partition}`), partition)
      expect(await clear(queue, { isWaiting: true, partition: 1 })).toEqual({
        removed: 2,
        discarded: 0,
        next: null,
      })
      const gone = { waiting: 0, deleted: 2 }
      const stays = { waiting: 2, deleted: 0 }
      expect(await given.storage.readCounts({ queue })).toMatchObject([stays, gone, stays])
      expect(await clear(queue, { isWaiting: true })).toEqual({ removed: 4, discarded: 0, next: null })
    })

    it('clear does not touch other queues', async () => {
      const [queue, other] = [await given.queue(), await given.queue()]
      await produce(queue, newItems(2))
      await produce(other, newItems(2))
      await clear(queue, { isWaiting: true })
      expect(await list(other)).toHaveLength(2)
    })

    it('clear continues after the given id', async () => {
      const queue = await given.queue()
      const [first = '', , third = ''] = await produce(queue, newItems(4))
      const { next } = await clear(queue, { isWaiting: true, countMax: 1 })
      expect(next).toBe(first)
      expect(await clear(queue, { isWaiting: true, after: third })).toMatchObject({ removed: 1, next: null })
      expect(await namesIn(queue)).toEqual(['item-1', 'item-2'])
    })

    it('clear frees the source ids of removed items', async () => {
      const queue = await given.queue()
      const items = [{ payload: bytes('x'), sourceId: 'a' }]
      const command = { op: 'import', queue, partition: 0, items, now: noon } as const
      await given.run(command)
      await clear(queue, { isWaiting: true })
      expect((await given.run(command))[0]?.id).not.toBeNull()
    })
  })
})
