import { expect, it } from 'vitest'
import type { Leased } from '../../../src/core/items/item.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { minute, newItems, noon, toText } from '../../make.ts'
import { startTestProcess } from '../processes/start-process.ts'
import { expectUnique } from '../support/expect-consistent-store.ts'
import { run } from '../support/store-reads.ts'
import { describeStores, describeTheseStores, type StoreFixture } from '../support/test-stores.ts'

const itemCount = 10_000
const leaserCount = 50
/** Small, so that leasers compete often. */
const batchMax = 20

/** Half of the items are produced, half imported: a store may keep them in different tables. */
async function fill(given: StoreFixture): Promise<{ queue: string; ids: readonly string[] }> {
  const queue = await given.queue()
  const half = newItems(itemCount / 2)
  const sourced = half.map(({ payload }, index) => ({ payload, sourceId: `source-${index}` }))
  const [produced, imported] = await given.storage.write([
    { op: 'produce', queue, partition: 0, items: half, now: noon },
    { op: 'import', queue, partition: 0, items: sourced, now: noon },
  ])
  return { queue, ids: [...produced.ids, ...imported.flatMap(({ id }) => id ?? [])] }
}

/** Leases until nothing is left, and returns the leased items. */
async function leaseAll(storage: Storage, queue: string, holder: string): Promise<Leased[]> {
  const got: Leased[] = []
  const holders = Array.from({ length: batchMax }, () => holder)
  for (;;) {
    const leased = await run(storage, { op: 'lease', queue, partition: 0, holders, now: noon })
    if (leased.length === 0) return got
    got.push(...leased)
  }
}

function expectEachOnce(ids: readonly string[], leasedIds: readonly string[]): void {
  expectUnique(leasedIds, 'items handed out')
  expect(leasedIds.toSorted()).toEqual(ids.toSorted())
}

describeStores('fifty leasers at once', (given) => {
  it('fifty concurrent leasers get each of 10,000 items exactly once', async () => {
    const { queue, ids } = await fill(given)
    const leasers = Array.from({ length: leaserCount }, (_, index) => `leaser-${index}`)
    const got = await Promise.all(leasers.map((holder) => leaseAll(given.storage, queue, holder)))
    expectEachOnce(
      ids,
      got.flatMap((items) => items.map((item) => item.id)),
    )
    for (const [index, items] of got.entries()) {
      expect(items.filter((item) => item.lease.holder !== leasers[index] || item.attempts !== 1)).toEqual([])
      const order = items.map((item) => item.id)
      expect(order).toEqual(order.toSorted())
    }
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ waiting: 0, leased: itemCount }])
  })

  it('fifty concurrent workers settle every item once', async () => {
    const letters = await given.queue()
    const queue = await given.queue({ deadQueue: letters, attemptsMax: 2 })
    const items = newItems(1_000)
    await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
    const completed: string[] = []
    const work = async (): Promise<void> => {
      for (;;) {
        const holders = ['w', 'w', 'w']
        const leased = await given.run({ op: 'lease', queue, partition: 0, holders, now: noon })
        if (leased.length === 0) return
        const [toComplete, ...toRetry] = leased
        if (toComplete === undefined) return
        const back = toRetry.map(({ id }) => ({ id, availableAt: null, isDead: false, error: null }))
        const outcomes = await given.storage.write([
          { op: 'complete', queue, partition: 0, ids: [toComplete.id], now: noon },
          { op: 'retry', queue, partition: 0, items: back, now: noon },
        ])
        expect(outcomes.map((outcome) => outcome.isSettled)).toEqual([true, true])
        completed.push(toText(toComplete.payload))
      }
    }
    await Promise.all(Array.from({ length: leaserCount }, work))
    // A leaser stops when it finds nothing, even if another one retries an item later: complete the rest.
    await work()
    const dead = await given.storage.listItems({ queue: letters, countMax: 2_000 })
    const ended = [...completed, ...dead.map((letter) => toText(letter.payload))]
    expectUnique(ended, 'items that ended')
    expect(ended).toHaveLength(1_000)
  })
})

describeStores('concurrent equal calls', (given) => {
  it('concurrent calls create a queue once', async () => {
    const create = async () => given.run({ op: 'create-queue', queue: { name: 'same' }, now: noon })
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, create))
    const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(failures.map((error) => error.code)).toEqual(Array.from({ length: 19 }, () => 'QUEUE_EXISTS'))
  })

  it('concurrent imports store a source id once', async () => {
    const queue = await given.queue({ partitions: 4 })
    const imports = Array.from({ length: 40 }, (_, index) => {
      const items = ['x', 'y'].map((sourceId) => ({ payload: new Uint8Array([index]), sourceId }))
      // Half of the calls use the reverse order, which can cause a deadlock.
      if (index % 2 === 1) items.reverse()
      return given.run({ op: 'import', queue, partition: index % 4, items, now: noon })
    })
    const imported = (await Promise.all(imports)).flat()
    expect(imported.filter((row) => row.id !== null)).toHaveLength(2)
  })

  it('one of many concurrent completes succeeds', async () => {
    const queue = await given.queue()
    const { ids } = await given.run({ op: 'produce', queue, partition: 0, items: newItems(2), now: noon })
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w', 'w'], now: noon })
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const some = index % 2 === 0 ? ids : ids.toReversed()
        return given.run({ op: 'complete', queue, partition: 0, ids: some, now: noon })
      }),
    )
    expect(outcomes.filter((outcome) => outcome.isSettled)).toHaveLength(1)
  })

  it('concurrent advances change each item once', async () => {
    const letters = await given.queue()
    const queue = await given.queue({ deadQueue: letters, leaseTimeoutUs: minute, attemptsMax: 1 })
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(500), now: noon })
    const holders = Array.from({ length: 500 }, () => 'w')
    await given.run({ op: 'lease', queue, partition: 0, holders, now: noon })
    const passes = Array.from({ length: 20 }, async () => {
      const seen: string[] = []
      for (;;) {
        const { changes, isMore } = await given.run({ op: 'advance', now: noon + minute, countMax: 25 })
        seen.push(...changes.map((change) => change.fromId))
        if (!isMore) return seen
      }
    })
    const seen = (await Promise.all(passes)).flat()
    while ((await given.run({ op: 'advance', now: noon + minute, countMax: 25 })).changes.length > 0);
    expectUnique(seen, 'items whose lease was ended')
    const dead = await given.storage.listItems({ queue: letters, countMax: 1_000 })
    expect(new Set(dead.map((letter) => toText(letter.payload))).size).toBe(500)
    expect(dead).toHaveLength(500)
  })

  it('concurrent moves to one dead queue from two queues do not deadlock', async () => {
    const letters = await given.queue({ partitions: 2 })
    const queues = [await given.queue({ deadQueue: letters }), await given.queue({ deadQueue: letters })]
    const moves = queues.flatMap((queue) =>
      Array.from({ length: 20 }, async (_, index) => {
        const items = newItems(5, `${queue}-${index}`, { lease: { holder: 'w' } })
        const { ids } = await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
        const dead = ids.toReversed().map((id) => ({ id, availableAt: null, isDead: true, error: null }))
        return given.run({ op: 'retry', queue, partition: 0, items: dead, now: noon })
      }),
    )
    expect((await Promise.all(moves)).filter((settled) => !settled.isSettled)).toEqual([])
    expect(await given.storage.listItems({ queue: letters, countMax: 1_000 })).toHaveLength(200)
  })
})

describeTheseStores(['PostgreSQL'], 'two servers', (given) => {
  it('two servers with fifty leasers lease each of 10,000 items exactly once', async () => {
    const { queue, ids } = await fill(given)
    const other = await given.testStore.open()
    const leasers = Array.from({ length: leaserCount }, (_, index) => `leaser-${index}`)
    const got = await Promise.all(
      leasers.map((holder, index) => leaseAll(index % 2 === 0 ? given.storage : other, queue, holder)),
    )
    await other.close()
    expectEachOnce(
      ids,
      got.flatMap((items) => items.map((item) => item.id)),
    )
  })

  it('two processes lease each item exactly once', async () => {
    const { queue, ids } = await fill(given)
    const children = [0, 1].map((index) =>
      startTestProcess('lease-all', {
        target: given.testStore.target,
        queue,
        leasers: leaserCount / 2,
        batchMax,
        index,
      }),
    )
    await Promise.all(children.map((child) => child.waitForReport('ready')))
    for (const child of children) child.send('go')
    const got = await Promise.all(children.map((child) => child.waitForExit()))
    for (const lines of got) expect(lines.length, 'each process gets some').toBeGreaterThan(1)
    expectEachOnce(
      ids,
      got.flat().flatMap((line) => (line.kind === 'leased' ? (line.ids as string[]) : [])),
    )
  })
})
