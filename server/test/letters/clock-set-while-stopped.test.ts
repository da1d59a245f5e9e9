/**
 * The clock of the server, or of the database, is set while no server runs. A server cannot measure such a
 * step, so these tests state what is promised after it.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { createLetters } from '../../src/letters/create-letters.ts'
import type { Letters } from '../../src/letters/letters.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { day, hour, minute, newItems, noon, second } from '../make.ts'
import { ann, aSpec, createQueuePair, lettersFrom } from './test-system.ts'

type Server = Readonly<{ storage: Storage; engine: Engine; letters: Letters }>

/** A lock of a server that died passes to another server within this time. */
const takeoverUs = 15 * second
const letterCount = 2_500

describe.each(['SQLite file', 'PostgreSQL'] as const)('a clock set while no server runs (%s)', (store) => {
  let testStore: TestStore
  let time: { now: number; elapsed: number }
  let server: Server
  let starts = 0

  beforeEach(async () => {
    testStore = await createTestStore(store)
    time = { now: noon, elapsed: 0 }
    server = await start()
  })
  afterEach(async () => {
    expect(await server.storage.verify()).toEqual([])
    await end({ releasesLocks: true })
    await testStore.drop()
  })

  const start = async (): Promise<Server> => {
    const clock = { now: () => time.now }
    const storage = await testStore.open({ clock })
    const origin = time.elapsed
    // Its loops run, because the look at leases from before belongs to the start of a server.
    const engine = createEngine(storage, { clock, elapsedUs: () => time.elapsed - origin, random: () => 0.5 })
    const letters = createLetters({ storage, engine, clock, owner: `server ${++starts}` })
    return { storage, engine, letters }
  }
  /** Without its locks being released, as if the server had been killed. */
  const end = async ({ releasesLocks = false } = {}) => {
    if (releasesLocks) await server.letters.close()
    await server.engine.close()
    await server.storage.close()
  }
  const pass = (us: number) => {
    time.now += us
    time.elapsed += us
  }
  const restartAfter = async (stepUs: number) => {
    await end()
    time.now += stepUs
    server = await start()
    await server.engine.advance()
  }
  const countLeased = async () => (await server.storage.readCounts({ queue: 'orders' }))[0]?.leased
  const lease = async (countMax: number) => {
    await server.engine.createQueue({ name: 'orders', leaseTimeoutUs: minute, expireTimeoutUs: day })
    await server.engine.produce('orders', newItems(countMax))
    await server.engine.advance()
    const { items } = await server.engine.lease('orders', { clientId: 'w', countMax, timeoutMs: 5_000 })
    expect(items).toHaveLength(countMax)
    return items
  }
  const campaign = async (id: string) => {
    const found = await server.letters.campaigns.get(id)
    if (found === null) throw new Error('the campaign is gone')
    return found
  }
  const passUntilIdle = async () => {
    while (await server.letters.passes.campaigns()) {
      // Until no step is left at this time.
    }
  }
  const letterIdsOf = async (id: string) => {
    const letters = await server.letters.campaigns.listLetters(id, { countMax: 10_000 })
    return letters.map(({ letterId }) => letterId).sort()
  }

  it(
    'after a step back a lease is held for its lease time from the start, and no longer',
    needsOf(store),
    async () => {
      const [kept] = await lease(2)
      pass(20 * second)
      await restartAfter(-hour)
      expect(await countLeased()).toBe(2)
      pass(59 * second)
      await server.engine.advance()
      expect(await countLeased()).toBe(2)
      if (kept === undefined) throw new Error('nothing was leased')
      await server.engine.complete('orders', 0, [kept.id])
      pass(second)
      await server.engine.advance()
      expect(await countLeased()).toBe(0)
    },
  )

  it(
    'after a step forward beyond its deadline a lease has ended, and its holder cannot complete it',
    needsOf(store),
    async () => {
      const [item] = await lease(1)
      await restartAfter(hour)
      expect(await countLeased()).toBe(0)
      if (item === undefined) throw new Error('nothing was leased')
      await expect(server.engine.complete('orders', 0, [item.id])).rejects.toThrow(/not there/)
      const again = await server.engine.lease('orders', { clientId: 'w2', countMax: 1, timeoutMs: 5_000 })
      expect(again.items).toMatchObject([{ payload: item.payload, attempts: 2 }])
    },
  )

  it('after a step forward that ends before its deadline a lease goes on', needsOf(store), async () => {
    const [item] = await lease(1)
    await restartAfter(30 * second)
    expect(await countLeased()).toBe(1)
    if (item === undefined) throw new Error('nothing was leased')
    await server.engine.complete('orders', 0, [item.id])
  })

  describe.each([
    ['back', -hour],
    ['forward', hour],
  ])('a step %s', (_direction, stepUs) => {
    const capture = async (source: string, count: number) => {
      const { queue, deadQueue } = await createQueuePair(server)
      const letters = lettersFrom(queue, count).map((letter) => ({
        ...letter,
        sourceId: `${source} ${letter.sourceId}`,
      }))
      const captured = await server.letters.capture(deadQueue, letters)
      return { queue, deadQueue, ids: captured.map(({ letterId }) => letterId).sort() }
    }

    it(
      'a campaign that had begun sends the rest of its set once, and nothing else',
      needsOf(store),
      async () => {
        const { queue, deadQueue, ids } = await capture('first', letterCount)
        const { id } = await server.letters.campaigns.create(aSpec(deadQueue), ann)
        while ((await campaign(id)).counts.sent === 0) await server.letters.passes.campaigns()
        expect((await campaign(id)).counts.sent).toBeLessThan(letterCount)
        await restartAfter(stepUs)
        const late = lettersFrom(queue, 3).map((letter) => ({
          ...letter,
          sourceId: `late ${letter.sourceId}`,
        }))
        await server.letters.capture(deadQueue, late)
        // The server that died held the lock.
        await server.letters.passes.campaigns()
        pass(takeoverUs)
        await passUntilIdle()
        expect(await campaign(id)).toMatchObject({ size: letterCount, counts: { sent: letterCount } })
        expect(await letterIdsOf(id)).toEqual(ids)
        const [counts] = await server.storage.readCounts({ queue })
        expect(counts).toMatchObject({ accepted: letterCount })
      },
    )

    it('a set that was not frozen yet has the letters from before its campaign', needsOf(store), async () => {
      const { queue, deadQueue, ids } = await capture('first', 20)
      const { id } = await server.letters.campaigns.create(aSpec(deadQueue), ann)
      await restartAfter(stepUs)
      const late = lettersFrom(queue, 3).map((letter) => ({ ...letter, sourceId: `late ${letter.sourceId}` }))
      await server.letters.capture(deadQueue, late)
      await passUntilIdle()
      expect(await letterIdsOf(id)).toEqual(ids)
      expect(await campaign(id)).toMatchObject({ size: 20, counts: { sent: 20 } })
    })
  })
})
