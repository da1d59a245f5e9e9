/** A slow store: callers wait only for `batchMsMax`, and the results of late writes are still handled. */
import { afterEach, describe, expect, it } from 'vitest'
import { newItems, noon, toText } from '../../test/make.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { openStorage } from '../storage/open-storage.ts'
import { createEngine } from './create-engine.ts'
import type { Engine } from './engine.ts'

describe('the engine with a slow store', () => {
  let storage: Storage
  let engine: Engine
  let errors: unknown[] = []
  const texts = (items: readonly { payload: Uint8Array }[]) => items.map(({ payload }) => toText(payload))
  const aLease = (clientId: string, countMax = 1, timeoutMs = 5_000) =>
    engine.lease('orders', { clientId, countMax, timeoutMs })

  afterEach(async () => {
    await engine.close()
    expect(await storage.verify()).toEqual([])
    await storage.close()
  })

  /** Delays writes with that command until the returned function is called. */
  const slow = (op: string) => {
    const write = storage.write.bind(storage)
    let goOn = () => {}
    const allowed = new Promise<void>((resolve) => {
      goOn = resolve
    })
    storage.write = async (commands) => {
      if (commands.some((command) => command.op === op)) await allowed
      return write(commands)
    }
    return goOn
  }
  const unknown = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining('unknown') }

  const openedSlow = async () => {
    storage = await openStorage({ kind: 'memory' })
    const onError = (error: unknown) => errors.push(error)
    const clock = { now: () => noon }
    engine = createEngine(storage, { clock, isTicking: false, batchMsMax: 50, onError })
    errors = []
    await engine.createQueue({ name: 'orders' })
  }

  it('the engine rejects a late produce with an unknown outcome, and leases its items once they are stored', async () => {
    await openedSlow()
    const goOn = slow('produce')
    await expect(engine.produce('orders', newItems(1), { timeoutMs: 60_000 })).rejects.toMatchObject(unknown)
    const waiting = aLease('w')
    goOn()
    expect(texts((await waiting).items)).toHaveLength(1)
  })

  it('the engine rejects a late lease, and puts its items back without counting an attempt', async () => {
    await openedSlow()
    await engine.produce('orders', newItems(1))
    const goOn = slow('lease')
    await expect(aLease('w', 1, 60_000)).rejects.toMatchObject(unknown)
    goOn()
    expect((await aLease('other')).items).toMatchObject([{ attempts: 1 }])
  })

  it('the engine asks the store for fewer items after a late lease, and for few items if they are large', async () => {
    await openedSlow()
    const asked: number[] = []
    const write = storage.write.bind(storage)
    storage.write = async (commands) => {
      for (const command of commands) if (command.op === 'lease') asked.push(command.holders.length)
      return write(commands)
    }
    await engine.produce('orders', newItems(120))
    const goOn = slow('lease')
    await expect(aLease('w', 100, 60_000)).rejects.toMatchObject(unknown)
    await expect(aLease('w', 100, 60_000)).rejects.toMatchObject(unknown)
    goOn()
    await expect.poll(async () => (await aLease('other', 1)).items.length).toBe(1)
    expect(asked.slice(0, 2)).toEqual([100, 25])

    const large = { payload: new Uint8Array(3 * 2 ** 20) }
    for (let left = 119; left > 0; ) left -= (await aLease('w', 100)).items.length
    await engine.produce('orders', Array(6).fill(large))
    await aLease('w', 6)
    await engine.produce('orders', Array(20).fill(large))
    asked.length = 0
    await aLease('w', 20)
    expect(asked).toEqual([5])
    await engine.produce('orders', newItems(100))
    for (let left = 115; left > 0; ) left -= (await aLease('w', 100)).items.length
    expect(Math.max(...asked)).toBeGreaterThan(20)
  })

  it('large items that do not fit into one answer are leased by the next waiting leases', async () => {
    await openedSlow()
    await engine.produce('orders', Array(5).fill({ payload: new Uint8Array(9 * 2 ** 20) }))
    const leases = await Promise.all(['a', 'b', 'c'].map((worker) => aLease(worker, 5, 10_000)))
    expect(leases.map(({ items }) => items.length).sort()).toEqual([1, 1, 1])
    // Nothing is produced, so only the counts can wake these leases.
    expect((await aLease('d', 5, 10_000)).items).toHaveLength(1)
    expect((await aLease('e', 5, 10_000)).items).toHaveLength(1)
  })

  it('the engine rejects a late complete, and a complete behind it when its own timeout is over', async () => {
    await openedSlow()
    await engine.produce('orders', newItems(2))
    const { items, partition } = await aLease('w', 2)
    const [one, two] = items.map(({ id }) => id)
    const goOn = slow('complete')
    const first = engine.complete('orders', partition, [one ?? ''], { timeoutMs: 60_000 })
    await Promise.resolve()
    const second = engine.complete('orders', partition, [two ?? ''], { timeoutMs: 40 })
    await Promise.all([
      expect(first).rejects.toMatchObject(unknown),
      expect(second).rejects.toMatchObject({
        code: expect.stringMatching(/CALL_TIMEOUT|STORE_UNAVAILABLE/),
      }),
    ])
    goOn()
    await expect
      .poll(async () => (await storage.readCounts({ queue: 'orders' }))[0]?.completed)
      .toBeGreaterThanOrEqual(1)
  })

  it('the engine rejects a late create of a queue, which can be used once it is created', async () => {
    await openedSlow()
    await expect(engine.readStats('late')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    const goOn = slow('create-queue')
    await expect(engine.createQueue({ name: 'late' })).rejects.toMatchObject(unknown)
    goOn()
    await expect.poll(() => engine.getQueue('late')).toMatchObject({ name: 'late' })
    await expect(engine.createQueue({ name: 'late' })).rejects.toMatchObject({ code: 'QUEUE_EXISTS' })
    await engine.produce('late', newItems(1))
  })

  it('the engine reports the error of a late write to onError', async () => {
    await openedSlow()
    const goOn = slow('create-queue')
    await expect(engine.createQueue({ name: 'orders' })).rejects.toMatchObject(unknown)
    goOn()
    await expect.poll(() => errors).toMatchObject([{ code: 'QUEUE_EXISTS' }])
  })

  it('the engine rejects a late update of a queue, and applies the update once it is done', async () => {
    await openedSlow()
    await engine.updateQueue('orders', { isPaused: true })
    await engine.produce('orders', newItems(1))
    const waiting = aLease('w')
    const goOn = slow('update-queue')
    await expect(engine.updateQueue('orders', { isPaused: false })).rejects.toMatchObject(unknown)
    goOn()
    expect(texts((await waiting).items)).toHaveLength(1)
  })

  it('a late import step rejects with how many items are stored, and starts no further step', async () => {
    await openedSlow()
    const payload = new Uint8Array(1)
    await engine.importItems('orders', 0, [{ payload }])
    const write = storage.write.bind(storage)
    let steps = 0
    let goOn = () => {}
    const allowed = new Promise<void>((resolve) => {
      goOn = resolve
    })
    storage.write = async (commands) => {
      if (commands.some(({ op }) => op === 'import') && ++steps === 2) await allowed
      return write(commands)
    }
    const items = Array.from({ length: 2_500 }, (_, index) => ({ payload, sourceId: `s-${index}` }))
    await expect(engine.importItems('orders', 0, items)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/1000 of 2500 items are stored, and perhaps the next 1000/),
    })
    goOn()
    const accepted = async () => (await storage.readCounts({ queue: 'orders' }))[0]?.accepted
    await expect.poll(accepted).toBe(2_001)
    expect(steps).toBe(2)
    const again = await engine.importItems('orders', 0, items)
    expect(again.filter(({ id }) => id !== null)).toHaveLength(500)
  })

  it('imports large items in smaller steps', async () => {
    await openedSlow()
    const asked: number[] = []
    const write = storage.write.bind(storage)
    storage.write = async (commands) => {
      for (const command of commands) if (command.op === 'import') asked.push(command.items.length)
      return write(commands)
    }
    const sizes = [9, 9, 1, 17, 1, 1].map((mib) => ({ payload: new Uint8Array(mib * 2 ** 20) }))
    expect(await engine.importItems('orders', 0, sizes)).toHaveLength(6)
    expect(asked).toEqual([2, 2, 2])
    expect(await engine.importItems('orders', 0, [])).toEqual([])
  })

  it('the engine starts no delete and no clear if the store does not answer a read first', async () => {
    await openedSlow()
    const { ids, partition } = await engine.produce('orders', newItems(3))
    const getQueue = storage.getQueue.bind(storage)
    storage.getQueue = () => new Promise<never>(() => {})
    const all = { isWaiting: true, isScheduled: true, isLeased: true }
    for (const call of [
      () => engine.deleteQueue('orders'),
      () => engine.clear('orders', all),
      () => engine.deleteItems('orders', partition, ids),
      () => engine.reload('orders'),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    }
    storage.getQueue = getQueue
    expect(await storage.readCounts({ queue: 'orders' })).toMatchObject([{ waiting: 3 }])
  })

  it('a clear or a delete that has started has no deadline', async () => {
    await openedSlow()
    await engine.produce('orders', newItems(3))
    storage.listQueues = () => new Promise<never>(() => {})
    for (const [op, call] of [
      ['clear', () => engine.clear('orders', { isWaiting: true, isScheduled: true, isLeased: true })],
      ['delete-queue', () => engine.deleteQueue('orders')],
    ] as const) {
      const goOn = slow(op)
      let isDone = false
      const done = call().then(() => {
        isDone = true
      })
      // By then a read with a deadline has been given up.
      await expect(engine.listQueues({ countMax: 1 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(isDone).toBe(false)
      goOn()
      await done
    }
  })

  it('the engine gives up a read that the store does not answer', async () => {
    await openedSlow()
    const never = new Promise<never>(() => {})
    storage.getQueue = () => never
    await expect(engine.getQueue('orders')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})
