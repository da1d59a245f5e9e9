/** The clock of the server, or of the database, was ahead and is set back by an hour. */
import { afterEach, expect, it } from 'vitest'
import type { Campaign } from '../../src/letters/letters.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { hour, newItems, second } from '../make.ts'
import {
  ann,
  aSpec,
  captured,
  consume,
  createQueuePair,
  createTestSystem,
  lettersFrom,
  type TestSystem,
} from './test-system.ts'

/** A lock of a server that died passes to another server within this time. */
const takeoverUs = 15 * second

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'after the clock was set back', (given) => {
  let world: TestSystem
  const begin = async (count: number) => {
    world = createTestSystem(given.storage)
    const pair = await createQueuePair(world)
    const ids = await captured(world, pair.deadQueue, lettersFrom(pair.queue, count))
    return { ...pair, ids }
  }
  afterEach(() => world?.close())
  const now = async ({ id }: Pick<Campaign, 'id'>): Promise<Campaign> => {
    const campaign = await world.letters.campaigns.get(id)
    if (campaign === null) throw new Error('the campaign is gone')
    return campaign
  }
  const letterIdsOf = async ({ id }: Pick<Campaign, 'id'>) =>
    (await world.letters.campaigns.listLetters(id, { countMax: 100 })).map(({ letterId }) => letterId)

  it('a campaign of all letters contains every open letter', async () => {
    const { queue, deadQueue, ids } = await begin(20)
    world.tick(-hour)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    await world.work()
    expect(await now(campaign)).toMatchObject({ size: 20, counts: { sent: 20 } })
    expect((await letterIdsOf(campaign)).sort()).toEqual(ids.toSorted())
    expect(await consume(world, queue)).toHaveLength(20)
    await world.work()
    expect(await now(campaign)).toMatchObject({ state: 'done', counts: { resolved: 20 } })
  })

  it('a campaign does not contain letters that arrived or were restored after its creation', async () => {
    const { queue, deadQueue, ids } = await begin(4)
    const [restoredLater = '', restoredBefore = '', ...others] = ids
    await world.letters.discard([restoredLater, restoredBefore], ann)
    await world.letters.restore([restoredBefore], ann)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    world.tick(-hour)
    await captured(
      world,
      deadQueue,
      lettersFrom(queue, 3).map((letter) => ({ ...letter, sourceId: `late ${letter.sourceId}` })),
    )
    await world.letters.restore([restoredLater], ann)
    await world.work()
    expect((await letterIdsOf(campaign)).sort()).toEqual([restoredBefore, ...others].toSorted())
  })

  it('a campaign with a rate continues at its rate', async () => {
    const { deadQueue } = await begin(100)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { ratePerSecond: 10 }), ann)
    await world.work()
    world.tick(second)
    await world.work()
    expect((await now(campaign)).counts.sent).toBe(10)
    world.tick(-hour)
    await world.work()
    for (let seconds = 0; seconds < 3; seconds++) {
      world.tick(second)
      await world.work()
    }
    expect(await now(campaign)).toMatchObject({ counts: { sent: 40 }, rate: expect.closeTo(10, 0) })
  })

  it('another server takes over a campaign 15 seconds after its server died', async () => {
    const { deadQueue } = await begin(3_000)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    const dead = world.startServer(given.storage, { owner: 'the dead server' })
    while ((await now(campaign)).counts.sent === 0) await dead.letters.passes.campaigns()
    world.tick(-hour)
    const other = world.startServer(given.storage, { owner: 'the other server' })
    await other.letters.passes.campaigns()
    expect((await now(campaign)).counts.sent).toBe(1_000)
    world.tick(takeoverUs)
    await world.work(other.letters)
    expect((await now(campaign)).counts.sent).toBe(3_000)
  })

  it('a server continues its own campaign', async () => {
    const { deadQueue } = await begin(3_000)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    while ((await now(campaign)).counts.sent === 0) await world.letters.passes.campaigns()
    world.tick(-hour)
    await world.work()
    expect((await now(campaign)).counts.sent).toBe(3_000)
  })

  it('a server looks again for a lock that another server released', async () => {
    const { deadQueue } = await begin(3_000)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    const first = world.startServer(given.storage, { owner: 'the first server' })
    while ((await now(campaign)).counts.sent === 0) await first.letters.passes.campaigns()
    const other = world.startServer(given.storage, { owner: 'the other server' })
    await other.letters.passes.campaigns()
    await first.letters.close()
    world.tick(-hour)
    await world.work(other.letters)
    expect((await now(campaign)).counts.sent).toBe(3_000)
  })

  it('a lease ends after its lease time at the latest', async () => {
    world = createTestSystem(given.storage)
    const { engine } = world
    const queue = 'leased-orders'
    await engine.createQueue({ name: queue, leaseTimeoutUs: 30 * second })
    await engine.produce(queue, newItems(2))
    await engine.advance()
    const { items } = await engine.lease(queue, { clientId: 'w', countMax: 9, timeoutMs: 5_000 })
    expect(items).toHaveLength(2)
    world.tick(-hour)
    await engine.advance()
    const waiting = async () => (await given.storage.readCounts({ queue }))[0]?.waiting
    expect(await waiting()).toBe(0)
    world.tick(29 * second)
    await engine.advance()
    expect(await waiting()).toBe(0)
    world.tick(second)
    await engine.advance()
    expect(await waiting()).toBe(2)
  })
})
