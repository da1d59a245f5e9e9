/** A store that takes its time: nobody waits for it longer than told, and what it did after all is counted. */
import { afterEach, describe, expect, it } from 'vitest'
import { newItems, noon, textOf } from '../../test/make.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { openStorage } from '../storage/open-storage.ts'
import { createEngine } from './create-engine.ts'
import type { Engine } from './engine.ts'

describe('the engine with a store that takes its time', () => {
  let storage: Storage
  let engine: Engine
  let errors: unknown[] = []
  const texts = (items: readonly { payload: Uint8Array }[]) => items.map(({ payload }) => textOf(payload))
  const aLease = (clientId: string, countMax = 1, timeoutMs = 5_000) =>
    engine.lease('orders', { clientId, countMax, timeoutMs })

  afterEach(async () => {
    await engine.close()
    expect(await storage.verify()).toEqual([])
    await storage.close()
  })

  /** Writes with that command go on when told to. */
  const slow = (op: string) => {
    const write = storage.write.bind(storage)
    let goOn = () => {}
    const told = new Promise<void>((resolve) => {
      goOn = resolve
    })
    storage.write = async (commands) => {
      if (commands.some((command) => command.op === op)) await told
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

  it('tells who produces that nobody knows, and counts what came of it', async () => {
    await openedSlow()
    const goOn = slow('produce')
    await expect(engine.produce('orders', newItems(1), { timeoutMs: 60_000 })).rejects.toMatchObject(unknown)
    const waiting = aLease('w')
    goOn()
    expect(texts((await waiting).items)).toHaveLength(1)
  })

  it('tells who leases, and puts back what that was given, as if it had never been', async () => {
    await openedSlow()
    await engine.produce('orders', newItems(1))
    const goOn = slow('lease')
    await expect(aLease('w', 1, 60_000)).rejects.toMatchObject(unknown)
    goOn()
    expect((await aLease('other')).items).toMatchObject([{ attempts: 1 }])
  })

  it('asks for fewer of what it did not give in time, and for few of what is large', async () => {
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

  it('gives of large items what it can at once, and the rest to who waits behind', async () => {
    await openedSlow()
    await engine.produce('orders', Array(5).fill({ payload: new Uint8Array(9 * 2 ** 20) }))
    const leases = await Promise.all(['a', 'b', 'c'].map((worker) => aLease(worker, 5, 10_000)))
    expect(leases.map(({ items }) => items.length).sort()).toEqual([1, 1, 1])
    // One after the other, with nothing that would wake them but what is there.
    expect((await aLease('d', 5, 10_000)).items).toHaveLength(1)
    expect((await aLease('e', 5, 10_000)).items).toHaveLength(1)
  })

  it('tells who completes, and who waits behind that when its own time is over', async () => {
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
      .poll(async () => (await storage.counts({ queue: 'orders' }))[0]?.completed)
      .toBeGreaterThanOrEqual(1)
  })

  it('tells who makes a queue, and who looks for it afterwards finds what came of it', async () => {
    await openedSlow()
    await expect(engine.stats('late')).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    const goOn = slow('create-queue')
    await expect(engine.createQueue({ name: 'late' })).rejects.toMatchObject(unknown)
    goOn()
    await expect.poll(() => engine.getQueue('late')).toMatchObject({ name: 'late' })
    await expect(engine.createQueue({ name: 'late' })).rejects.toMatchObject({ code: 'QUEUE_EXISTS' })
    await engine.produce('late', newItems(1))
  })

  it('reports what went wrong with it when nobody waited any more', async () => {
    await openedSlow()
    const goOn = slow('create-queue')
    await expect(engine.createQueue({ name: 'orders' })).rejects.toMatchObject(unknown)
    goOn()
    await expect.poll(() => errors).toMatchObject([{ code: 'QUEUE_EXISTS' }])
  })

  it('tells who changes a queue, and goes by the change when it is there', async () => {
    await openedSlow()
    await engine.updateQueue('orders', { isPaused: true })
    await engine.produce('orders', newItems(1))
    const waiting = aLease('w')
    const goOn = slow('update-queue')
    await expect(engine.updateQueue('orders', { isPaused: false })).rejects.toMatchObject(unknown)
    goOn()
    expect(texts((await waiting).items)).toHaveLength(1)
  })

  it('tells who imports how much is stored, begins nothing more, and gives out what came of it', async () => {
    await openedSlow()
    const payload = new Uint8Array(1)
    await engine.importItems('orders', 0, [{ payload }])
    const write = storage.write.bind(storage)
    let steps = 0
    let goOn = () => {}
    const told = new Promise<void>((resolve) => {
      goOn = resolve
    })
    storage.write = async (commands) => {
      if (commands.some(({ op }) => op === 'import') && ++steps === 2) await told
      return write(commands)
    }
    const items = Array.from({ length: 2_500 }, (_, index) => ({ payload, sourceId: `s-${index}` }))
    await expect(engine.importItems('orders', 0, items)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/1000 of 2500 items are stored, the next 1000 perhaps/),
    })
    goOn()
    const accepted = async () => (await storage.counts({ queue: 'orders' }))[0]?.accepted
    await expect.poll(accepted).toBe(2_001)
    expect(steps).toBe(2)
    const again = await engine.importItems('orders', 0, items)
    expect(again.filter(({ id }) => id !== null)).toHaveLength(500)
  })

  it('is given large items to import fewer at a time: so much is stored in time', async () => {
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

  it('begins no delete and no clear when it does not even say whether the queue is there', async () => {
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
    expect(await storage.counts({ queue: 'orders' })).toMatchObject([{ waiting: 3 }])
  })

  it('lets a clear and a delete that it began take as long as they need', async () => {
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
      // Longer than a call of a queue may take.
      await expect(engine.listQueues({ countMax: 1 })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(isDone).toBe(false)
      goOn()
      await done
    }
  })

  it('gives up a read', async () => {
    await openedSlow()
    const never = new Promise<never>(() => {})
    storage.getQueue = () => never
    await expect(engine.getQueue('orders')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})
