/** A store that takes its time: nobody waits for it longer than told, and what it did after all is counted. */
import { afterEach, describe, expect, it } from 'vitest'
import { newItems, noon, textOf } from '../../test/make.ts'
import { openStorage } from '../storage/open.ts'
import type { Storage } from '../storage/storage.ts'
import type { Engine } from './engine.ts'
import { openEngine } from './open.ts'

describe('the engine with a store that takes its time', () => {
  let storage: Storage
  let engine: Engine
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
    engine = openEngine(storage, { clock: { now: () => noon }, isTicking: false, batchMsMax: 20 })
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

  it('gives up a read', async () => {
    await openedSlow()
    const never = new Promise<never>(() => {})
    storage.getQueue = () => never
    await expect(engine.getQueue('orders')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})
