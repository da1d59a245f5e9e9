import { afterEach, describe, expect, it } from 'vitest'
import { openTestEngine, type TestEngine, toTexts } from '../../test/engine/test-engine.ts'
import { bytes, minute, newItems, noon, second, toText } from '../../test/make.ts'
import type { NewQueue } from '../core/items/queue.ts'
import type { Storage } from '../storage/contract/storage.ts'
import type { Engine } from './engine.ts'

describe('the engine', () => {
  let given: TestEngine
  let storage: Storage
  let engine: Engine
  let clock: TestEngine['clock']
  let aLease: TestEngine['lease']
  const dropped: string[] = []

  const opened = async (queue: Partial<NewQueue> = {}): Promise<Engine> => {
    given = await openTestEngine(queue)
    ;({ engine, storage, clock, lease: aLease } = given)
    dropped.length = 0
    engine.onEvent((event) => {
      if (event.type === 'items-dropped') dropped.push(...event.items.map(({ fromId }) => fromId))
    })
    return engine
  }

  /** A lease whose client disconnects while it waits, without aborting its signal. */
  const aDisconnectedLease = async () => {
    let isConnected = true
    const asked = { clientId: 'a', countMax: 1, timeoutMs: 5_000, isConnected: () => isConnected }
    const lease = engine.lease('orders', asked)
    await engine.readStats('orders')
    isConnected = false
    return { lease }
  }

  afterEach(() => given.close())

  it('leases produced items, oldest first, and removes completed items', async () => {
    await opened()
    await engine.produce('orders', newItems(3))
    const { partition, items } = await aLease('a', 2)
    expect(toTexts(items)).toEqual(['item-0', 'item-1'])
    await engine.complete(
      'orders',
      partition,
      items.map(({ id }) => id),
    )
    expect((await engine.readStats('orders')).partitions[0]).toMatchObject({
      waiting: 1,
      leased: 0,
      completed: 2,
    })
  })

  it('the engine serves a waiting lease as soon as an item is produced', async () => {
    await opened()
    const waiting = aLease('a', 10)
    await engine.produce('orders', newItems(1))
    expect(toTexts((await waiting).items)).toEqual(['item-0'])
  })

  it('the engine gives items to waiting leases in turn', async () => {
    await opened()
    const waiting = ['a', 'b', 'c'].map((clientId) => aLease(clientId, 2))
    await engine.readStats('orders')
    await engine.produce('orders', newItems(5))
    expect((await Promise.all(waiting)).map(({ items }) => toTexts(items))).toEqual([
      ['item-0', 'item-3'],
      ['item-1', 'item-4'],
      ['item-2'],
    ])
  })

  it.each([
    { leases: 2, countMax: 100, items: 10, each: [5, 5] },
    { leases: 2, countMax: 1_000, items: 10, each: [5, 5] },
    { leases: 3, countMax: 1_000, items: 1_000, each: [334, 333, 333] },
    { leases: 40, countMax: 10, items: 40, each: Array.from({ length: 40 }, () => 1) },
    { leases: 3, countMax: 100, items: 300, each: [100, 100, 100] },
  ])('the engine gives $items items in turn to $leases leases that ask for $countMax each', async (given) => {
    await opened()
    const waiting = Array.from({ length: given.leases }, (_, index) =>
      aLease(`client-${index}`, given.countMax),
    )
    await engine.readStats('orders')
    await engine.produce('orders', newItems(given.items))
    expect((await Promise.all(waiting)).map(({ items }) => items.length)).toEqual(given.each)
  })

  it('with fewer items than leases, the leases that get none keep waiting', async () => {
    await opened()
    const waiting = Array.from({ length: 5 }, (_, index) => aLease(`client-${index}`, 10, 100))
    await engine.readStats('orders')
    await engine.produce('orders', newItems(2))
    const ends = await Promise.allSettled(waiting)
    expect(ends.map(({ status }) => status)).toEqual([
      ...['fulfilled', 'fulfilled'],
      ...['rejected', 'rejected', 'rejected'],
    ])
  })

  it('the engine finds a queue that was created while a call was looking for it', async () => {
    await opened()
    const getQueue = storage.getQueue.bind(storage)
    const slow = Promise.withResolvers<void>()
    storage.getQueue = async (name) => {
      storage.getQueue = getQueue
      const found = await getQueue(name)
      await slow.promise
      return found
    }
    const early = engine.produce('late', newItems(1))
    await engine.createQueue({ name: 'late' })
    const next = engine.lease('late', { clientId: 'a', countMax: 1, timeoutMs: 5_000 })
    slow.resolve()
    await early
    expect(toTexts((await next).items)).toEqual(['item-0'])
  })

  it('a queue that was created again keeps its waiting leases when an older opening of it fails', async () => {
    await opened()
    const getQueue = storage.getQueue.bind(storage)
    const slow = Promise.withResolvers<void>()
    storage.getQueue = async () => {
      storage.getQueue = getQueue
      await slow.promise
      return null
    }
    const early = engine.readStats('orders')
    await engine.deleteQueue('orders')
    await engine.createQueue({ name: 'orders' })
    const waiting = aLease('a')
    slow.resolve()
    await early
    expect((await engine.readStats('orders')).leaseWaiting).toBe(1)
    await engine.produce('orders', newItems(1))
    expect(toTexts((await waiting).items)).toEqual(['item-0'])
  })

  it('the engine does not process a call whose signal has already aborted', async () => {
    await opened()
    const signal = AbortSignal.abort(new Error('gone'))
    await expect(engine.produce('orders', newItems(1), { signal })).rejects.toThrow('gone')
    await expect(aLease('a', 1, 10)).rejects.toThrow('no items')
  })

  it('the engine gives no items to a client that disconnected without aborting', async () => {
    await opened()
    const gone = await aDisconnectedLease()
    await engine.produce('orders', newItems(1))
    await expect(gone.lease).rejects.toThrow('gone')
    const { items } = await aLease('a')
    expect(items).toMatchObject([{ attempts: 1 }])
  })

  it('a client whose first lease disconnected can lease again', async () => {
    await opened()
    const gone = await aDisconnectedLease()
    const again = aLease('a')
    await expect(gone.lease).rejects.toThrow('gone')
    await engine.produce('orders', newItems(1))
    expect((await again).items).toHaveLength(1)
  })

  it('the engine writes concurrent produce calls in a few batches, and returns to each caller its own ids', async () => {
    await opened()
    let writes = 0
    const write = storage.write.bind(storage)
    storage.write = (commands) => {
      writes++
      return write(commands)
    }
    const made = await Promise.all(
      Array.from({ length: 90 }, (_, index) => engine.produce('orders', newItems(1, `caller-${index}`))),
    )
    expect(writes).toBeLessThan(5)
    expect(new Set(made.flatMap(({ ids }) => ids)).size).toBe(90)
    const listed = await engine.listItems({ queue: 'orders', countMax: 100 })
    expect(made.map(({ ids }) => ids[0])).toEqual(listed.map(({ id }) => id))
  })

  it('one invalid request in a batch does not fail the others', async () => {
    await opened()
    const results = await Promise.allSettled([
      engine.produce('orders', [{ payload: bytes('good') }]),
      engine.produce('orders', [{ payload: bytes('bad'), kind: 'a\0b' }]),
      engine.produce('orders', [{ payload: bytes('good too') }]),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(toTexts(await engine.listItems({ queue: 'orders', countMax: 9 }))).toEqual(['good', 'good too'])
  })

  it('produces into the partition with the fewest items, and leases from the one with the most', async () => {
    await opened({ partitions: 3 })
    const places: number[] = []
    for (const count of [2, 1, 1, 1]) places.push((await engine.produce('orders', newItems(count))).partition)
    expect(places).toEqual([0, 1, 2, 1])
    expect((await aLease('a')).partition).toBe(0)
  })

  it('the engine puts back items that were leased for a client that left in the meantime', async () => {
    await opened()
    const gone = new AbortController()
    const waiting = engine.lease('orders', {
      clientId: 'a',
      countMax: 5,
      timeoutMs: 5_000,
      signal: gone.signal,
    })
    const write = storage.write.bind(storage)
    storage.write = async (commands) => {
      const results = await write(commands)
      if (commands.some(({ op }) => op === 'lease')) gone.abort(new Error('client left'))
      return results
    }
    await engine.produce('orders', newItems(2))
    await expect(waiting).rejects.toThrow('client left')
    const { items } = await aLease('b', 5)
    expect(items.map(({ attempts, payload }) => [attempts, toText(payload)])).toEqual([
      [1, 'item-0'],
      [1, 'item-1'],
    ])
  })

  it('the engine rejects a second lease of a client that already waits, and a lease that got no items in time', async () => {
    await opened()
    await expect(aLease('a', 1, 20)).rejects.toMatchObject({ code: 'LEASE_TIMEOUT' })
    const first = aLease('a', 1, 20_000)
    await engine.readStats('orders')
    await expect(aLease('a')).rejects.toMatchObject({ code: 'CLIENT_ID_BUSY' })
    await engine.produce('orders', newItems(1))
    expect((await first).items).toHaveLength(1)
  })

  it('when time passes, leases end, scheduled items become available, and waiting leases get them', async () => {
    await opened({ leaseTimeoutUs: minute, attemptsMax: 3 })
    await engine.produce('orders', [
      ...newItems(1),
      { payload: bytes('later'), availableAt: noon + 30 * second },
    ])
    const first = await aLease('a')
    const waiting = aLease('b', 5)
    clock.at = noon + 30 * second
    await engine.advance()
    expect(toTexts((await waiting).items)).toEqual(['later'])
    const again = aLease('c', 5)
    clock.at = noon + minute
    await engine.advance()
    const { items } = await again
    expect(items).toMatchObject([{ attempts: 2, rootId: first.items[0]?.id }])
    expect(items[0]?.id).not.toBe(first.items[0]?.id)
  })

  it('a dying item wakes leases on its dead queue; without a dead queue it is reported as dropped', async () => {
    await opened()
    await engine.createQueue({ name: 'graveyard' })
    await engine.produce('orders', newItems(2))
    const { items } = await aLease('a', 1)
    await engine.retry('orders', 0, [{ id: items[0]?.id ?? '', isDead: true }])
    expect(dropped).toEqual([items[0]?.id])
    await engine.updateQueue('orders', { deadQueue: 'graveyard' })
    const onDeadQueue = engine.lease('graveyard', { clientId: 'm', countMax: 1, timeoutMs: 5_000 })
    const second = await aLease('a', 1)
    await engine.retry('orders', 0, [
      { id: second.items[0]?.id ?? '', isDead: true, error: { message: 'no' } },
    ])
    expect((await onDeadQueue).items).toMatchObject([
      { sourceId: second.items[0]?.id, failure: { message: 'no' } },
    ])
  })

  it('the engine retries an item at the time that the retry policy of the queue gives', async () => {
    await opened({ retry: { kind: 'list', delaysUs: [second, 5 * second], jitter: 0 } })
    await engine.produce('orders', newItems(1))
    const { items } = await aLease('a')
    await engine.retry('orders', 0, [{ id: items[0]?.id ?? '' }])
    const [scheduled] = await engine.listItems({ queue: 'orders', countMax: 1 })
    expect(scheduled).toMatchObject({ state: 'waiting', availableAt: noon + second })
    const waiting = aLease('b')
    clock.at = noon + second
    await engine.advance()
    expect((await waiting).items).toMatchObject([{ attempts: 2 }])
  })

  it('a refused complete names the item and changes nothing', async () => {
    await opened()
    await engine.produce('orders', newItems(2))
    const { items } = await aLease('a')
    const listed = await engine.listItems({ queue: 'orders', countMax: 2 })
    const ids = listed.map(({ id }) => id)
    await expect(engine.complete('orders', 0, ids)).rejects.toMatchObject({
      code: 'ITEM_NOT_LEASED',
      itemId: ids[1],
    })
    await expect(engine.complete('orders', 0, [items[0]?.id ?? '', 'gone'])).rejects.toMatchObject({
      code: 'ITEM_NOT_FOUND',
      itemId: 'gone',
    })
    expect((await engine.readStats('orders')).partitions[0]).toMatchObject({ leased: 1, completed: 0 })
  })

  it('the engine rejects requests above the limit, and waiting requests when their queue is deleted', async () => {
    await opened()
    engine.hold('orders', true)
    await engine.readStats('orders')
    const waiting = Array.from({ length: 100 }, () =>
      engine.produce('orders', newItems(1)).catch((error) => error.code),
    )
    await expect(engine.produce('orders', newItems(1))).rejects.toMatchObject({ code: 'QUEUE_OVERLOADED' })
    await engine.deleteQueue('orders')
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['QUEUE_SHUTTING_DOWN']))
    await expect(engine.produce('orders', newItems(1))).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
  })

  it('leases no items of a paused queue until it is resumed', async () => {
    await opened({ isPaused: true })
    await engine.produce('orders', newItems(1))
    const waiting = aLease('a')
    await engine.readStats('orders')
    expect((await engine.readStats('orders')).leaseWaiting).toBe(1)
    await engine.updateQueue('orders', { isPaused: false })
    expect(toTexts((await waiting).items)).toEqual(['item-0'])
  })

  it('the engine does not lease an expired item that has not been removed yet', async () => {
    await opened({ expireTimeoutUs: minute, leaseTimeoutUs: second })
    await engine.produce('orders', newItems(2, 'old'))
    clock.at += minute - second
    await engine.produce('orders', newItems(1, 'new'))
    clock.at += second
    const { items } = await aLease('w', 10)
    expect(toTexts(items)).toEqual(['new-0'])
    await expect(aLease('w', 10, 50)).rejects.toMatchObject({ code: 'LEASE_TIMEOUT' })
    const old = await engine.listItems({ queue: 'orders', countMax: 10 })
    expect(old.map(({ state, attempts }) => [state, attempts])).toEqual([
      ['waiting', 0],
      ['waiting', 0],
      ['leased', 1],
    ])
    await engine.advance()
    expect(dropped).toHaveLength(2)
  })
})
