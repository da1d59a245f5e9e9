/** The clock of the server, or of the database, is set forward by five minutes while leases are held. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { minute, newItems, noon, second } from '../make.ts'

const leaseTimeoutUs = 60 * second

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'after the clock was set forward', (given) => {
  let time: { now: number; elapsed: number }
  const engines: Engine[] = []
  const queue = 'orders'

  beforeEach(() => {
    time = { now: noon, elapsed: 0 }
  })
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.close()
  })

  const start = (): Engine => {
    const engine = createEngine(given.storage, {
      clock: { now: () => time.now },
      elapsedUs: () => time.elapsed,
      isTicking: false,
    })
    engines.push(engine)
    return engine
  }
  const pass = (us: number) => {
    time.now += us
    time.elapsed += us
  }
  const setForward = (us: number) => {
    time.now += us
  }
  const lease = async (engine: Engine, countMax: number) =>
    (await engine.lease(queue, { clientId: 'w', countMax, timeoutMs: 5_000 })).items
  const advanceAll = async () => {
    for (const engine of engines) await engine.advance()
  }
  const countLeased = async () => (await given.storage.readCounts({ queue }))[0]?.leased

  it('a lease keeps the time that it had left, also if several servers notice it', async () => {
    const [first, second_] = [start(), start()]
    await first.createQueue({ name: queue, leaseTimeoutUs })
    await first.produce(queue, newItems(3))
    await advanceAll()
    expect(await lease(first, 2)).toHaveLength(2)
    pass(20 * second)
    await advanceAll()
    setForward(5 * minute)
    // A lease from after the step is right.
    expect(await lease(second_, 1)).toHaveLength(1)
    await advanceAll()
    await advanceAll()
    expect(await countLeased()).toBe(3)
    const deadlines = (await given.storage.listItems({ queue, countMax: 9 })).map((item) =>
      item.state === 'leased' ? item.lease.deadline - time.now : null,
    )
    expect(deadlines).toEqual([40 * second, 40 * second, 60 * second])
    pass(40 * second - 1)
    await advanceAll()
    expect(await countLeased()).toBe(3)
    pass(1)
    await advanceAll()
    expect(await countLeased()).toBe(1)
    pass(20 * second)
    await advanceAll()
    expect(await countLeased()).toBe(0)
    expect(await given.storage.verify()).toEqual([])
  })

  it('a lease whose deadline has passed by the new clock can be extended and completed', async () => {
    const engine = start()
    await engine.createQueue({ name: queue, leaseTimeoutUs })
    await engine.produce(queue, newItems(2))
    await engine.advance()
    const [kept, done] = await lease(engine, 2)
    if (kept === undefined || done === undefined) throw new Error('nothing was leased')
    setForward(5 * minute)
    await engine.extend(queue, 0, [kept.id], 2 * minute)
    await engine.advance()
    await engine.complete(queue, 0, [done.id])
    pass(2 * minute - 1)
    await engine.advance()
    expect(await countLeased()).toBe(1)
    pass(1)
    await engine.advance()
    expect(await countLeased()).toBe(0)
  })

  it('all leases are corrected, however many there are, and nothing else is changed', async () => {
    const engine = start()
    await engine.createQueue({ name: queue, leaseTimeoutUs, expireTimeoutUs: minute })
    await engine.produce(queue, newItems(2_100))
    await engine.advance()
    let leased = 0
    while (leased < 2_050) leased += (await lease(engine, Math.min(1_000, 2_050 - leased))).length
    setForward(2 * minute)
    await engine.advance()
    // The items that waited have expired: their deadline is a time, not a duration.
    expect((await given.storage.readCounts({ queue }))[0]).toMatchObject({ leased: 2_050, waiting: 0 })
    pass(leaseTimeoutUs)
    await engine.advance()
    expect(await countLeased()).toBe(0)
  })

  it('a clock that was set back is followed at once, and set forward again keeps the leases', async () => {
    const engine = start()
    await engine.createQueue({ name: queue, leaseTimeoutUs })
    await engine.produce(queue, newItems(1))
    await engine.advance()
    await lease(engine, 1)
    setForward(-5 * minute)
    await engine.advance()
    pass(30 * second)
    setForward(5 * minute)
    await engine.advance()
    expect(await countLeased()).toBe(1)
    pass(30 * second)
    await engine.advance()
    expect(await countLeased()).toBe(0)
  })
})
