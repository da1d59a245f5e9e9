/**
 * Two servers on one PostgreSQL, with clocks that differ by seconds, run random commands at the same time.
 * The results that each of them got are recorded and must be consistent in the end.
 */
import { expect, it } from 'vitest'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { bytes, hour, minute, newItems, noon, second, toText } from '../../make.ts'
import { repeats, withRandom } from '../../random-test.ts'
import type { SeededRandom } from '../../seeded-random.ts'
import { executeSql } from '../support/execute-sql.ts'
import { expectConsistentStore, expectUnique } from '../support/expect-consistent-store.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { listAll, run } from '../support/store-reads.ts'
import { describeTheseStores, type StoreFixture } from '../support/test-stores.ts'
import { runOnTwoServers, type Worker } from '../support/two-servers.ts'

const stepsEach = repeats(150)
const workersEach = 4
const partitions = 2

/** Calls get a number when they start and when they end, which gives them an order. */
type Produced = Readonly<{ partition: number; startedAt: number; endedAt: number; ids: readonly string[] }>

class CallLog {
  readonly produced: Produced[] = []
  readonly names: string[] = []
  readonly completed: string[] = []
  readonly deleted: string[] = []
  /** Item and attempt of each lease. */
  readonly attempts: string[] = []
  readonly imported: string[] = []
  #calls = 0

  next(): number {
    return ++this.#calls
  }
}

describeTheseStores(['PostgreSQL'], 'two servers with different clocks', (given) => {
  it('two servers under random load lose nothing, duplicate nothing and keep the order', {
    timeout: 120_000,
  }, async () => {
    await withRandom(async (random) => {
      const letters = await given.queue({ partitions: 3 })
      const queue = await given.queue({
        deadQueue: letters,
        partitions,
        leaseTimeoutUs: 10 * second,
        attemptsMax: 3,
      })
      const callLog = new CallLog()
      const tick = () => random.below(400_000)
      const act = ({ storage, name }: Worker, now: number) =>
        actRandomly(storage, queue, random, callLog, now, name)
      await runOnTwoServers(given, { workersEach, stepsEach, tick, act }, async (servers, time) => {
        expectUnique(callLog.attempts, 'attempts handed to two holders')
        expectGrowingIds(callLog.produced)
        await expectAllAccountedFor(given, queue, letters, callLog)
        await drainInOrder(servers, queue, time + hour)
      })
    })
  })

  it('two servers see each other’s queues, changes and deletions immediately', async () => {
    const other = await given.testStore.open()
    const queue = await given.queue({ leaseTimeoutUs: minute })
    const produce = { op: 'produce', queue, partition: 0, items: newItems(2), now: noon } as const
    // Both servers read the queue, so that both may cache it.
    await run(other, produce)
    await run(given.storage, produce)
    await run(other, {
      op: 'update-queue',
      name: queue,
      changes: { leaseTimeoutUs: hour, isPaused: true },
      now: noon,
    })
    const lease = { op: 'lease', queue, partition: 0, holders: ['w'], now: noon } as const
    expect(await run(given.storage, lease)).toEqual([])
    await run(given.storage, { op: 'update-queue', name: queue, changes: { isPaused: false }, now: noon })
    expect(await run(other, lease)).toMatchObject([{ lease: { deadline: noon + hour } }])

    await run(other, { op: 'delete-queue', name: queue })
    await expectRefusal(run(given.storage, produce), 'QUEUE_NOT_FOUND')
    await expectRefusal(run(given.storage, lease), 'QUEUE_NOT_FOUND')
    await run(other, { op: 'create-queue', queue: { name: queue, partitions: 3 }, now: noon })
    expect((await run(given.storage, { ...produce, partition: 2 })).ids).toHaveLength(2)
    await other.close()
  })

  it('two servers know when a worker last asked either of them for items', async () => {
    const other = await given.testStore.open()
    const queue = await given.queue()
    expect(await other.readLeaseCall(queue)).toBeNull()
    const record = (storage: Storage, at: number) =>
      run(storage, {
        op: 'record-lease-calls',
        calls: [
          { queue, at },
          { queue: 'nowhere', at },
        ],
      })
    await record(given.storage, noon)
    expect(await other.readLeaseCall(queue)).toBe(noon)
    await record(other, noon + minute)
    // A server that is late does not undo what another recorded.
    await record(given.storage, noon + 1)
    expect(await given.storage.readLeaseCall(queue)).toBe(noon + minute)
    await run(other, { op: 'delete-queue', name: queue })
    expect(await given.storage.readLeaseCall(queue)).toBeNull()
    await run(other, { op: 'create-queue', queue: { name: queue }, now: noon })
    expect(await given.storage.readLeaseCall(queue)).toBeNull()
    await other.close()
  })

  it('records of lease calls and deletions of the queue do not block each other, and leave no row', async () => {
    const other = await given.testStore.open()
    for (let round = 0; round < 10; round++) {
      const queue = await given.queue()
      const calls = [{ queue, at: noon }]
      await Promise.all([
        run(given.storage, { op: 'record-lease-calls', calls }),
        run(other, { op: 'delete-queue', name: queue }),
        run(given.storage, { op: 'record-lease-calls', calls }),
      ])
      expect(await other.readLeaseCall(queue)).toBeNull()
    }
    await executeSql(
      given.testStore.target,
      (schema) => `do $$ begin
        if exists (select from ${schema}lease_calls) then raise exception 'a row of a deleted queue is left'; end if;
      end $$`,
    )
    await other.close()
  })

  it('a server that lost a lock cannot write with its fence', async () => {
    const other = await given.testStore.open()
    const queue = await given.queue()
    const acquire = { op: 'acquire-lock', name: 'sweep', now: noon, deadline: noon + minute } as const
    const mine = await run(given.storage, { ...acquire, owner: 'a' })
    expect(await run(other, { ...acquire, owner: 'b' })).toBeNull()
    const theirs = await run(other, { ...acquire, owner: 'b', now: noon + minute, deadline: noon + hour })
    if (mine === null || theirs === null) throw new Error('each had its turn')
    const produce = { op: 'produce', queue, partition: 0, items: newItems(1), now: noon } as const
    await expectRefusal(given.storage.write([{ op: 'fence', lock: mine }, produce]), 'LOCK_LOST')
    await other.write([{ op: 'fence', lock: theirs }, produce])
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ accepted: 1 }])
    await other.close()
  })

  it('a fence rejects a write during a concurrent takeover', async () => {
    const other = await given.testStore.open()
    const queue = await given.queue()
    const acquire = { op: 'acquire-lock', name: 'race', now: noon, deadline: noon + 1 } as const
    for (let round = 0; round < 30; round++) {
      const now = noon + 2 * round
      const mine = await run(given.storage, { ...acquire, owner: 'a', now, deadline: now + 1 })
      if (mine === null) throw new Error('it was free')
      const items = newItems(1, `round-${round}`)
      const [written, taken] = await Promise.allSettled([
        given.storage.write([
          { op: 'fence', lock: mine },
          { op: 'produce', queue, partition: 0, items, now },
        ]),
        // Takes over the lock and reads in the same write.
        other.write([
          { ...acquire, owner: 'b', now: now + 1, deadline: now + 1 },
          { op: 'clear', queue, isWaiting: true, isScheduled: true, isLeased: true, countMax: 10 },
        ]),
      ])
      expect(taken.status).toBe('fulfilled')
      const removed = taken.status === 'fulfilled' ? taken.value[1].removed : -1
      // A write commits before the takeover, which then sees it, or is refused. It never commits later.
      expect(removed).toBe(written.status === 'fulfilled' ? 1 : 0)
      if (written.status === 'rejected') await expectRefusal(Promise.reject(written.reason), 'LOCK_LOST')
    }
    await other.close()
  })

  it('two servers share exact counts, and either can reconcile them', async () => {
    const other = await given.testStore.open()
    const queue = await given.queue()
    const servers = [given.storage, other]
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const storage = servers[index % 2] ?? other
        await run(storage, { op: 'produce', queue, partition: 0, items: newItems(5), now: noon })
        const across = servers[(index + 1) % 2] ?? other
        const holders = ['w', 'w']
        const leased = await run(across, { op: 'lease', queue, partition: 0, holders, now: noon })
        await run(storage, {
          op: 'complete',
          queue,
          partition: 0,
          ids: leased.map((item) => item.id),
          now: noon,
        })
        if (index % 10 === 0) expect(await across.reconcile()).toEqual([])
      }),
    )
    for (const storage of servers) {
      expect(await storage.readCounts({ queue })).toMatchObject([
        { accepted: 200, completed: 80, waiting: 120, leased: 0 },
      ])
    }
    await other.close()
  })
})

async function actRandomly(
  storage: Storage,
  queue: string,
  random: SeededRandom,
  callLog: CallLog,
  now: number,
  name: string,
): Promise<void> {
  const partition = random.below(partitions)
  const at = { queue, partition, now }
  switch (random.below(8)) {
    case 0:
    case 1: {
      const items = Array.from({ length: 1 + random.below(4) }, (_, index) => ({
        payload: bytes(`${name}.${index}`),
      }))
      const startedAt = callLog.next()
      const { ids } = await run(storage, { op: 'produce', items, ...at })
      callLog.produced.push({ partition, startedAt, endedAt: callLog.next(), ids })
      callLog.names.push(...items.map((item) => toText(item.payload)))
      return
    }
    case 2: {
      // Both servers try the same few source ids.
      const sourceId = `source-${random.below(100)}`
      const items = [{ payload: bytes(sourceId), sourceId }]
      const [imported] = await run(storage, { op: 'import', items, ...at })
      if (imported?.id != null) {
        callLog.imported.push(sourceId)
        callLog.names.push(sourceId)
      }
      return
    }
    case 3:
      await run(storage, { op: 'advance', now, countMax: 1 + random.below(10) })
      return
    default:
      await leaseAndSettle(storage, at, random, callLog, name)
  }
}

async function leaseAndSettle(
  storage: Storage,
  at: Readonly<{ queue: string; partition: number; now: number }>,
  random: SeededRandom,
  callLog: CallLog,
  name: string,
): Promise<void> {
  const holders = Array.from({ length: 1 + random.below(5) }, () => name)
  const leased = await run(storage, { op: 'lease', holders, ...at })
  const order = leased.map((item) => item.id)
  expect(order, 'a lease goes by id').toEqual(order.toSorted())
  callLog.attempts.push(...leased.map((item) => `${item.rootId}/${item.attempts}`))
  const [first, next, ...rest] = leased
  if (first !== undefined && random.below(4) > 0) {
    const settled = await run(storage, { op: 'complete', ids: [first.id], ...at })
    if (settled.isSettled) callLog.completed.push(toText(first.payload))
  }
  if (next !== undefined) {
    const availableAt = random.below(2) === 0 ? null : at.now + random.below(5) * second + 1
    const item = { id: next.id, availableAt, isDead: random.below(4) === 0, error: null }
    await run(storage, { op: 'retry', items: [item], ...at })
  }
  const ids = rest.map((item) => item.id)
  if (ids.length > 0) await run(storage, { op: 'extend', ids, deadline: at.now + minute, ...at })
}

/** Ids of a produce are above those of every produce in the partition that had ended before it began. */
function expectGrowingIds(produced: readonly Produced[]): void {
  for (let partition = 0; partition < partitions; partition++) {
    const here = produced.filter((each) => each.partition === partition)
    const byEnd = here.toSorted((a, b) => a.endedAt - b.endedAt)
    let ended = 0
    let highest = ''
    for (const call of here.toSorted((a, b) => a.startedAt - b.startedAt)) {
      for (let before = byEnd[ended]; before && before.endedAt < call.startedAt; before = byEnd[++ended]) {
        const last = before.ids.at(-1) ?? ''
        if (last > highest) highest = last
      }
      expect((call.ids[0] ?? '') > highest, 'ids grow from call to call').toBe(true)
      expect(call.ids).toEqual(call.ids.toSorted())
    }
    expectUnique(
      here.flatMap((each) => each.ids),
      'ids',
    )
  }
}

async function expectAllAccountedFor(
  given: StoreFixture,
  queue: string,
  letters: string,
  callLog: CallLog,
): Promise<void> {
  await expectConsistentStore(given.storage)
  const there = [...(await listAll(given.storage, queue)), ...(await listAll(given.storage, letters))]
  const names = [...callLog.completed, ...there.map((item) => toText(item.payload))]
  // A source id is free again when its item is gone, so those may occur twice.
  const once = (all: readonly string[]): string[] => all.filter((name) => !name.startsWith('source-'))
  expectUnique(once(names), 'items')
  expect(names.toSorted()).toEqual(callLog.names.toSorted())
}

/** Leases all waiting items from both servers and checks that they come in the order of their ids. */
async function drainInOrder(
  servers: readonly Readonly<{ storage: Storage }>[],
  queue: string,
  now: number,
): Promise<void> {
  for (let partition = 0; partition < partitions; partition++) {
    const ids: string[] = []
    for (let turn = 0; ; turn++) {
      const { storage } = servers[turn % 2] ?? { storage: undefined }
      if (storage === undefined) throw new Error('there are two')
      const leased = await run(storage, { op: 'lease', queue, partition, holders: ['w', 'w'], now })
      if (leased.length === 0) break
      ids.push(...leased.map((item) => item.id))
    }
    expect(ids).toEqual(ids.toSorted())
  }
}
