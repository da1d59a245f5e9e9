import { afterEach, describe, expect, it } from 'vitest'
import { bytes, minute, newItems, noon, second, textOf } from '../../test/make.ts'
import type { NewQueue } from '../core/queue.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { openStorage } from '../storage/open-storage.ts'
import { createEngine } from './create-engine.ts'
import type { Engine } from './engine.ts'

describe('the engine', () => {
  let now = noon
  let storage: Storage
  let engine: Engine
  const dropped: string[] = []

  const opened = async (queue: Partial<NewQueue> = {}): Promise<Engine> => {
    now = noon
    dropped.length = 0
    storage = await openStorage({ kind: 'memory' })
    engine = createEngine(storage, {
      clock: { now: () => now },
      isTicking: false,
    })
    engine.onEvent((event) => {
      if (event.type === 'items-dropped') dropped.push(...event.items.map(({ fromId }) => fromId))
    })
    await engine.createQueue({ name: 'orders', ...queue })
    return engine
  }
  const texts = (items: readonly { payload: Uint8Array }[]) => items.map(({ payload }) => textOf(payload))
  const aLease = (clientId: string, countMax = 1, timeoutMs = 5_000) =>
    engine.lease('orders', { clientId, countMax, timeoutMs })

  /** A lease whose client disconnects while it waits, without aborting its signal. */
  const aDisconnectedLease = async () => {
    let isConnected = true
    const asked = { clientId: 'a', countMax: 1, timeoutMs: 5_000, isConnected: () => isConnected }
    const lease = engine.lease('orders', asked)
    await engine.stats('orders')
    isConnected = false
    return { lease }
  }

  const ann = { actor: 'ann', reason: 'test data', requestId: 'r1' }
  /** Items as another system exports them. */
  const elsewhere = (count: number, sourceOf = (index: number) => index) =>
    Array.from({ length: count }, (_, index) => ({
      payload: bytes(`item-${index}`),
      sourceId: `source-${sourceOf(index)}`,
    }))
  /** Records the commands written from now on, one text per transaction. */
  const watchWrites = (): (() => readonly string[]) => {
    const seen: string[] = []
    const write = storage.write.bind(storage)
    storage.write = (commands) => {
      seen.push(commands.map(({ op }) => op).join(' '))
      return write(commands)
    }
    return () => seen
  }
  /** The store fails from its `count`th command of that kind. */
  const failFrom = (op: string, count: number): (() => void) => {
    const write = storage.write.bind(storage)
    let seen = 0
    storage.write = async (commands) => {
      if (commands.some((command) => command.op === op) && ++seen >= count)
        throw new Error('the store is gone')
      return write(commands)
    }
    return () => {
      storage.write = write
    }
  }

  afterEach(async () => {
    await engine.close()
    expect(await storage.verify()).toEqual([])
    await storage.close()
  })

  it('leases produced items, oldest first, and removes completed items', async () => {
    await opened()
    await engine.produce('orders', newItems(3))
    const { partition, items } = await aLease('a', 2)
    expect(texts(items)).toEqual(['item-0', 'item-1'])
    await engine.complete(
      'orders',
      partition,
      items.map(({ id }) => id),
    )
    expect((await engine.stats('orders')).partitions[0]).toMatchObject({
      waiting: 1,
      leased: 0,
      completed: 2,
    })
  })

  it('serves a waiting lease as soon as an item is produced', async () => {
    await opened()
    const waiting = aLease('a', 10)
    await engine.produce('orders', newItems(1))
    expect(texts((await waiting).items)).toEqual(['item-0'])
  })

  it('gives items to waiting leases in turn', async () => {
    await opened()
    const waiting = ['a', 'b', 'c'].map((clientId) => aLease(clientId, 2))
    await engine.stats('orders')
    await engine.produce('orders', newItems(5))
    expect((await Promise.all(waiting)).map(({ items }) => texts(items))).toEqual([
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
  ])('gives $items items in turn to $leases leases that ask for $countMax each', async (given) => {
    await opened()
    const waiting = Array.from({ length: given.leases }, (_, index) =>
      aLease(`client-${index}`, given.countMax),
    )
    await engine.stats('orders')
    await engine.produce('orders', newItems(given.items))
    expect((await Promise.all(waiting)).map(({ items }) => items.length)).toEqual(given.each)
  })

  it('with fewer items than leases, the leases that get none keep waiting', async () => {
    await opened()
    const waiting = Array.from({ length: 5 }, (_, index) => aLease(`client-${index}`, 10, 100))
    await engine.stats('orders')
    await engine.produce('orders', newItems(2))
    const ends = await Promise.allSettled(waiting)
    expect(ends.map(({ status }) => status)).toEqual([
      ...['fulfilled', 'fulfilled'],
      ...['rejected', 'rejected', 'rejected'],
    ])
  })

  it('finds a queue that was created while a call was looking for it', async () => {
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
    expect(texts((await next).items)).toEqual(['item-0'])
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
    const early = engine.stats('orders')
    await engine.deleteQueue('orders')
    await engine.createQueue({ name: 'orders' })
    const waiting = aLease('a')
    slow.resolve()
    await early
    expect((await engine.stats('orders')).leaseWaiting).toBe(1)
    await engine.produce('orders', newItems(1))
    expect(texts((await waiting).items)).toEqual(['item-0'])
  })

  it('does not process a call whose signal has already aborted', async () => {
    await opened()
    const signal = AbortSignal.abort(new Error('gone'))
    await expect(engine.produce('orders', newItems(1), { signal })).rejects.toThrow('gone')
    await expect(aLease('a', 1, 10)).rejects.toThrow('no items')
  })

  it('gives no items to a client that disconnected without aborting', async () => {
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

  it('writes concurrent produce calls in a few batches, and returns to each caller its own ids', async () => {
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
    expect(texts(await engine.listItems({ queue: 'orders', countMax: 9 }))).toEqual(['good', 'good too'])
  })

  it('produces into the partition with the fewest items, and leases from the one with the most', async () => {
    await opened({ partitions: 3 })
    const places: number[] = []
    for (const count of [2, 1, 1, 1]) places.push((await engine.produce('orders', newItems(count))).partition)
    expect(places).toEqual([0, 1, 2, 1])
    expect((await aLease('a')).partition).toBe(0)
  })

  it('puts back items that were leased for a client that left in the meantime', async () => {
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
    expect(items.map(({ attempts, payload }) => [attempts, textOf(payload)])).toEqual([
      [1, 'item-0'],
      [1, 'item-1'],
    ])
  })

  it('rejects a second lease of a client that already waits, and a lease that got no items in time', async () => {
    await opened()
    await expect(aLease('a', 1, 20)).rejects.toMatchObject({ code: 'LEASE_TIMEOUT' })
    const first = aLease('a', 1, 20_000)
    await engine.stats('orders')
    await expect(aLease('a')).rejects.toMatchObject({ code: 'CLIENT_ID_BUSY' })
    await engine.produce('orders', newItems(1))
    expect((await first).items).toHaveLength(1)
  })

  it('when time passes, leases end, scheduled items become available, and waiting leases get them', async () => {
    await opened({ leaseUs: minute, attemptsMax: 3 })
    await engine.produce('orders', [
      ...newItems(1),
      { payload: bytes('later'), availableAt: noon + 30 * second },
    ])
    const first = await aLease('a')
    const waiting = aLease('b', 5)
    now = noon + 30 * second
    await engine.advance()
    expect(texts((await waiting).items)).toEqual(['later'])
    const again = aLease('c', 5)
    now = noon + minute
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

  it('retries an item at the time that the retry policy of the queue gives', async () => {
    await opened({ retry: { kind: 'list', delaysUs: [second, 5 * second], jitter: 0 } })
    await engine.produce('orders', newItems(1))
    const { items } = await aLease('a')
    await engine.retry('orders', 0, [{ id: items[0]?.id ?? '' }])
    const [scheduled] = await engine.listItems({ queue: 'orders', countMax: 1 })
    expect(scheduled).toMatchObject({ state: 'waiting', availableAt: noon + second })
    const waiting = aLease('b')
    now = noon + second
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
    expect((await engine.stats('orders')).partitions[0]).toMatchObject({ leased: 1, completed: 0 })
  })

  it('accepts requests for a held queue, and processes them in order once it is released', async () => {
    await opened()
    engine.hold('orders', true)
    await engine.stats('orders')
    const producing = engine.produce('orders', newItems(1))
    const leasing = aLease('a')
    await Promise.resolve()
    expect(await engine.stats('orders')).toMatchObject({ produceWaiting: 1, leaseWaiting: 1 })
    engine.hold('orders', false)
    await producing
    expect(texts((await leasing).items)).toEqual(['item-0'])
  })

  it('rejects requests above the limit, and waiting requests when their queue is deleted', async () => {
    await opened()
    engine.hold('orders', true)
    await engine.stats('orders')
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
    await engine.stats('orders')
    expect((await engine.stats('orders')).leaseWaiting).toBe(1)
    await engine.updateQueue('orders', { isPaused: false })
    expect(texts((await waiting).items)).toEqual(['item-0'])
  })

  it('writes an audit row in the transaction of a delete, and none if nothing was deleted', async () => {
    await opened()
    const { ids } = await engine.produce('orders', newItems(1))
    await engine.deleteItems('orders', 0, ['0'.repeat(27), ...ids], ann)
    const trace = { actor: 'ann', target: 'orders', reason: 'test data' }
    expect(await storage.listAudit({ countMax: 1 })).toMatchObject([
      { ...trace, action: 'items.delete', details: { partition: 0, ids, removed: 1 } },
    ])
    const before = await storage.listAudit({ countMax: 1 })
    await engine.deleteItems('orders', 0, ids, ann)
    expect(await storage.listAudit({ countMax: 1 })).toEqual(before)
  })

  it('each step of a clear has an audit row with its count, also when a later step fails', async () => {
    await opened()
    const what = { isWaiting: true, isScheduled: false, isLeased: false }
    for (let times = 0; times < 5; times++) await engine.produce('orders', newItems(500))
    const writes = watchWrites()
    expect(await engine.clear('orders', what, ann)).toBe(2_500)
    expect(writes()).toEqual(['clear', 'clear', 'clear'])
    const trace = { actor: 'ann', target: 'orders', reason: 'test data', requestId: 'r1' }
    expect(await storage.listAudit({ countMax: 3 })).toMatchObject(
      [500, 1_000, 1_000].map((removed) => ({
        ...trace,
        action: 'queue.clear',
        details: { ...what, removed },
      })),
    )
    const before = await storage.listAudit({ countMax: 1 })
    expect(await engine.clear('orders', what, ann)).toBe(0)
    expect(await storage.listAudit({ countMax: 1 })).toEqual(before)

    for (let times = 0; times < 5; times++) await engine.produce('orders', newItems(500))
    failFrom('clear', 2)
    await expect(engine.clear('orders', what, ann)).rejects.toThrow('the store is gone')
    expect((await engine.stats('orders')).partitions).toMatchObject([{ waiting: 1_500 }])
    expect(await storage.listAudit({ countMax: 1 })).toMatchObject([
      { action: 'queue.clear', details: { removed: 1_000 } },
    ])
  })

  it('imports in steps, and returns the results in order', async () => {
    await opened()
    const given = elsewhere(2_500, (index) => index % 2_400)
    const writes = watchWrites()
    const waiting = aLease('a', 1_000)
    const imported = await engine.importItems('orders', 0, given, ann)
    expect(writes().filter((ops) => ops !== 'lease')).toEqual(['import audit', 'import', 'import', 'audit'])
    expect(imported.map(({ id }) => id === null)).toEqual(given.map((_, index) => index >= 2_400))
    const stored = await engine.listItems({ queue: 'orders', countMax: 3_000 })
    expect(stored.map(({ id }) => id)).toEqual(imported.flatMap(({ id }) => id ?? []))
    expect(texts(stored)).toEqual(texts(given.slice(0, 2_400)))
    expect(texts((await waiting).items)).toEqual(texts(given.slice(0, 1_000)))
    expect(await storage.listAudit({ countMax: 2 })).toMatchObject([
      { action: 'items.imported', details: { partition: 0, items: 2_500, stored: 2_400 } },
      { action: 'items.import', details: { partition: 0, items: 2_500 } },
    ])
  })

  it('an import that fails half-way has stored the first items, and a repeat stores the rest', async () => {
    await opened()
    const given = elsewhere(2_500)
    const restore = failFrom('import', 3)
    await expect(engine.importItems('orders', 0, given)).rejects.toThrow('the store is gone')
    const listed = async () => texts(await engine.listItems({ queue: 'orders', countMax: 3_000 }))
    expect(await listed()).toEqual(texts(given.slice(0, 2_000)))
    // The stored items can be leased, although their import failed.
    expect((await aLease('a', 10)).items).toHaveLength(10)
    restore()
    const again = await engine.importItems('orders', 0, given)
    expect(again.map(({ id }) => id === null)).toEqual(given.map((_, index) => index < 2_000))
    expect(await listed()).toEqual(texts(given))
  })

  it('imports nothing if one of the items is invalid', async () => {
    await opened()
    const given = [...elsewhere(1_500), { payload: bytes('bad'), kind: 'a\0b' }]
    await expect(engine.importItems('orders', 0, given)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(engine.importItems('orders', 7, given.slice(0, 1_500))).rejects.toMatchObject({
      code: 'PARTITION_NOT_FOUND',
    })
    expect(await engine.listItems({ queue: 'orders', countMax: 9 })).toEqual([])
  })

  it('processes held requests of different kinds in order of arrival', async () => {
    for (const order of ['complete retry', 'retry complete', 'extend retry', 'retry extend'] as const) {
      await opened()
      await engine.produce('orders', newItems(1))
      const { items, partition } = await aLease('w')
      const ids = items.map(({ id }) => id)
      const acts = {
        complete: () => engine.complete('orders', partition, ids),
        retry: () => engine.retry('orders', partition, [{ id: ids[0] ?? '' }]),
        extend: () => engine.extend('orders', partition, ids),
      }
      engine.hold('orders', true)
      const done = order.split(' ').map((act) => acts[act as keyof typeof acts]())
      const outcomes = Promise.allSettled<unknown>(done)
      engine.hold('orders', false)
      const isBothFine = order === 'extend retry'
      expect([order, (await outcomes).map(({ status }) => status)]).toEqual([
        order,
        ['fulfilled', isBothFine ? 'fulfilled' : 'rejected'],
      ])
      await engine.close()
    }
  })

  it('serves a held lease with the items that were there when it arrived, and can be held again', async () => {
    await opened()
    await engine.produce('orders', [{ payload: bytes('low') }])
    engine.hold('orders', true)
    const first = aLease('first')
    await engine.stats('orders')
    const urgent = engine.produce('orders', [{ payload: bytes('high'), priority: 9 }])
    const second = aLease('second')
    await expect
      .poll(async () => engine.stats('orders'))
      .toMatchObject({ leaseWaiting: 2, produceWaiting: 1 })
    engine.hold('orders', false)
    await urgent
    expect(texts((await first).items)).toEqual(['low'])
    expect(texts((await second).items)).toEqual(['high'])
    engine.hold('orders', true)
    const held = engine.produce('orders', newItems(1))
    await expect.poll(async () => engine.stats('orders')).toMatchObject({ produceWaiting: 1 })
    engine.hold('orders', false)
    await held
    await engine.produce('orders', newItems(1))
  })

  it('does not lease an expired item that has not been removed yet', async () => {
    await opened({ expireUs: minute, leaseUs: second })
    await engine.produce('orders', newItems(2, 'old'))
    now += minute - second
    await engine.produce('orders', newItems(1, 'new'))
    now += second
    const { items } = await aLease('w', 10)
    expect(texts(items)).toEqual(['new-0'])
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
