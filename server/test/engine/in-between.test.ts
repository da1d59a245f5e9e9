/** Calls and changes that arrive while an answer of the store is on its way. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { newItems, noon, toText } from '../make.ts'

describe('an engine that waits for an answer of its store', () => {
  let storage: Storage
  let engine: Engine
  const open = (): Engine => createEngine(storage, { clock: { now: () => noon }, isTicking: false })
  const lease = (clientId: string, countMax = 1) =>
    engine.lease('orders', { clientId, countMax, timeoutMs: 2_000 })
  const texts = (items: readonly { payload: Uint8Array }[]) => items.map(({ payload }) => toText(payload))

  beforeEach(async () => {
    storage = await openStorage({ kind: 'memory' })
    engine = open()
    await engine.createQueue({ name: 'orders' })
  })
  afterEach(async () => {
    await engine.close()
    expect(await storage.verify()).toEqual([])
    await storage.close()
  })

  /** Holds back the answer to the next lease. `written` resolves when the store has done it. */
  const holdLease = (): { written: Promise<void>; release(): void } => {
    const [held, written] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const write = storage.write.bind(storage)
    storage.write = async (commands) => {
      const results = await write(commands)
      if (!commands.some(({ op }) => op === 'lease')) return results
      storage.write = write
      written.resolve()
      await held.promise
      return results
    }
    return { written: written.promise, release: held.resolve }
  }

  /** Stops the next write with such a command before the store does it, and before its answer arrives. */
  const stopNext = (op: 'lease' | 'produce') => {
    const [reached, allowed, written, answered] = Array.from({ length: 4 }, () =>
      Promise.withResolvers<void>(),
    )
    const write = storage.write.bind(storage)
    storage.write = async (commands) => {
      if (!commands.some((command) => command.op === op)) return write(commands)
      storage.write = write
      reached?.resolve()
      await allowed?.promise
      const results = await write(commands)
      written?.resolve()
      await answered?.promise
      return results
    }
    return {
      reached: reached?.promise,
      /** Resolves when the store has done it. */
      execute: async () => {
        allowed?.resolve()
        await written?.promise
      },
      answer: () => answered?.resolve(),
    }
  }

  /** A lease that expected one item and got two. Its answer has not arrived. */
  const leaseOfMoreThanExpected = async () => {
    await engine.produce('orders', newItems(1, 'first'))
    const firstLease = stopNext('lease')
    const first = lease('a', 2)
    await firstLease.reached
    const secondProduce = stopNext('produce')
    const produced = engine.produce('orders', newItems(1, 'second'))
    await secondProduce.reached
    await secondProduce.execute()
    await firstLease.execute()
    secondProduce.answer()
    await produced
    return { firstLease, first }
  }

  it('leases an item that was produced after an empty lease whose answer arrives late', async () => {
    const { firstLease, first } = await leaseOfMoreThanExpected()
    const emptyLease = stopNext('lease')
    const second = lease('b', 3)
    await emptyLease.reached
    firstLease.answer()
    expect(texts((await first).items)).toEqual(['first-0', 'second-0'])
    await emptyLease.execute()
    await engine.produce('orders', newItems(1, 'third'))
    emptyLease.answer()
    expect(texts((await second).items)).toEqual(['third-0'])
  })

  it('leases an item that was produced after an empty lease, although an older lease took more than expected', async () => {
    const { firstLease, first } = await leaseOfMoreThanExpected()
    const leaving = new AbortController()
    const emptyLease = stopNext('lease')
    const second = engine.lease('orders', {
      clientId: 'b',
      countMax: 3,
      timeoutMs: 2_000,
      signal: leaving.signal,
    })
    await emptyLease.reached
    await emptyLease.execute()
    emptyLease.answer()
    await engine.readStats('orders')
    leaving.abort(new Error('left'))
    await expect(second).rejects.toThrow('left')
    await engine.produce('orders', newItems(1, 'third'))
    firstLease.answer()
    expect(texts((await first).items)).toEqual(['first-0', 'second-0'])
    expect(texts((await lease('c')).items)).toEqual(['third-0'])
  })

  it('leases that got nothing get an item that was produced while the first lease was written', async () => {
    const waiting = [lease('a', 5), lease('b', 5)]
    await engine.readStats('orders')
    const { written, release } = holdLease()
    await engine.produce('orders', newItems(1, 'first'))
    await written
    await engine.produce('orders', newItems(1, 'second'))
    release()
    expect((await Promise.all(waiting)).map(({ items }) => texts(items))).toEqual([['first-0'], ['second-0']])
  })

  it('a lease that met a pause gets its item once the queue is resumed', async () => {
    const waiting = lease('a')
    await engine.readStats('orders')
    const [held, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const write = storage.write.bind(storage)
    storage.write = async (commands) => {
      if (commands.some(({ op }) => op === 'lease')) {
        asked.resolve()
        await held.promise
      }
      return write(commands)
    }
    await engine.produce('orders', newItems(1))
    await asked.promise
    await engine.updateQueue('orders', { isPaused: true })
    held.resolve()
    await engine.readStats('orders')
    await engine.updateQueue('orders', { isPaused: false })
    expect(texts((await waiting).items)).toEqual(['item-0'])
  })

  it('the engine counts an item that was produced during a recount', async () => {
    await engine.readStats('orders')
    const [held, counted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const counts = storage.readCounts.bind(storage)
    storage.readCounts = async (query) => {
      const result = await counts(query)
      counted.resolve()
      await held.promise
      return result
    }
    const looking = engine.deleteItems('orders', 0, ['gone'])
    await counted.promise
    await engine.produce('orders', newItems(1))
    held.resolve()
    await looking
    storage.readCounts = counts
    expect(texts((await lease('a')).items)).toEqual(['item-0'])
  })

  it('a recount during a lease does not make the next lease ask the wrong partition', async () => {
    await engine.createQueue({ name: 'two', partitions: 2 })
    await engine.produce('two', newItems(10), { partition: 0 })
    await engine.produce('two', newItems(11), { partition: 1 })
    const leaseTen = async (clientId: string) =>
      (await engine.lease('two', { clientId, countMax: 10, timeoutMs: 2_000 })).items.length
    const stopped = stopNext('lease')
    const first = leaseTen('a')
    await stopped.reached
    await engine.reload('two')
    await stopped.execute()
    stopped.answer()
    expect([await first, await leaseTen('b')]).toEqual([10, 10])
  })

  it('the engine rejects a lease of a queue that was being opened when the engine closed', async () => {
    const waiting = lease('a')
    const refused = expect(waiting).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    await engine.close()
    await refused
  })

  it('the engine puts back items that were on their way to a lease when the engine closed', async () => {
    const waiting = lease('a')
    const refused = expect(waiting).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    await engine.readStats('orders')
    const { written, release } = holdLease()
    await engine.produce('orders', newItems(1))
    await written
    const closing = engine.close()
    release()
    await closing
    await refused
    expect(await storage.listItems({ queue: 'orders', countMax: 2 })).toMatchObject([
      { state: 'waiting', attempts: 0 },
    ])
  })
})
