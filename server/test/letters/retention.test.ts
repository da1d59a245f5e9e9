import { afterEach, expect, it } from 'vitest'
import { defaultPolicy } from '../../src/core/items/queue.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { expectRefusal } from '../conformance/support/expect-refusal.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { day, noon } from '../make.ts'
import {
  ann,
  captured,
  consume,
  createQueuePair,
  createTestSystem,
  lettersFrom,
  type TestSystem,
} from './test-system.ts'

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'retention', (given) => {
  let world: TestSystem
  afterEach(() => world?.close())
  const plainly = { target: null, edit: null, isDeadAllowed: false, isCapped: true }
  /** One letter each: waiting, being redriven, resolved, DEAD, discarded. */
  const oneOfEach = async (letterClass: string) => {
    const backoff = { kind: 'fixed', delayUs: 0, jitter: 0 } as const
    const redrive = { mode: 'manual', redrivesMax: 1, backoff } as const
    const { queue, deadQueue } = await createQueuePair(world, { letterClass, redrive })
    const [waiting = '', leased = '', done = '', dead = '', discarded = ''] = await captured(
      world,
      deadQueue,
      lettersFrom(queue, 5),
    )
    await world.letters.redrive([done, dead], plainly, ann)
    await consume(world, queue, (payload) => payload === 'order 2')
    await world.letters.redrive([leased], plainly, ann)
    await world.letters.discard([discarded], ann)
    return { deadQueue, ids: { waiting, leased, done, dead, discarded } }
  }
  /** Letters that are DEAD, of class standard. */
  const dead = async (count: number) => {
    const redrive = { ...defaultPolicy.redrive, redrivesMax: 1 }
    const { queue, deadQueue } = await createQueuePair(world, { redrive })
    const ids = await captured(world, deadQueue, lettersFrom(queue, count))
    await world.letters.redrive(ids, plainly, ann)
    await consume(world, queue, () => false)
    return { deadQueue, ids }
  }
  const left = async (ids: Record<string, string>) => {
    const names: string[] = []
    for (const [name, id] of Object.entries(ids)) {
      if ((await world.letters.find(id))?.archivedAt === null) names.push(name)
    }
    return names
  }
  const actions = async (target: string) =>
    (await given.storage.listAudit({ target, countMax: 100 }))
      .filter(({ actor }) => actor === 'policy')
      .map(({ action }) => action)

  it('retention archives ended letters after 30 days by class and purges them after 365', async () => {
    world = createTestSystem(given.storage)
    const standard = await oneOfEach('standard')
    const financial = await oneOfEach('financial')
    world.tick(30 * day)
    expect(await world.letters.passes.retention()).toBe(false)
    expect(await left(standard.ids)).toHaveLength(5)
    expect(await actions(standard.deadQueue)).toEqual([])
    expect(await world.letters.previewRetention()).toEqual([])
    world.tick(1)
    const would = await world.letters.previewRetention()
    expect(would.toSorted((a, b) => b.archived - a.archived)).toEqual([
      { queue: standard.deadQueue, archived: 3, purged: 0 },
      { queue: financial.deadQueue, archived: 2, purged: 0 },
    ])
    expect(await left(standard.ids)).toHaveLength(5)
    expect(await world.letters.passes.retention()).toBe(false)
    expect(await world.letters.previewRetention()).toEqual([])
    expect(await left(standard.ids)).toEqual(['waiting', 'leased'])
    expect(await left(financial.ids)).toEqual(['waiting', 'leased', 'dead'])
    expect(await actions(standard.deadQueue)).toEqual(['letters.archive'])
    expect(await world.letters.find(standard.ids.done)).toMatchObject({ archivedAt: noon + 30 * day + 1 })

    const [restored] = await world.letters.restore([standard.ids.discarded], ann)
    expect(restored).toMatchObject({ isRestored: true })
    expect((await world.letters.find(standard.ids.discarded))?.item).toMatchObject({ state: 'waiting' })

    world.tick(365 * day)
    await world.letters.passes.retention()
    expect(await world.letters.find(standard.ids.done)).not.toBeNull()
    world.tick(1)
    expect(await world.letters.previewRetention()).toContainEqual({
      queue: standard.deadQueue,
      archived: 0,
      purged: 2,
    })
    await world.letters.passes.retention()
    expect(await world.letters.find(standard.ids.done)).toBeNull()
    expect(await world.letters.find(standard.ids.dead)).toBeNull()
    expect(await left(standard.ids)).toEqual(['waiting', 'leased', 'discarded'])
    expect(await left(financial.ids)).toEqual(['waiting', 'leased', 'dead'])
    expect(await actions(standard.deadQueue)).toEqual(['letters.purge-archive', 'letters.archive'])
    expect(await world.letters.passes.retention()).toBe(false)
    expect(await actions(standard.deadQueue)).toHaveLength(2)
  })

  it('a retention run works in batches until everything is done and reports the result', async () => {
    world = createTestSystem(given.storage)
    const { queue, deadQueue } = await createQueuePair(world)
    const ids = await captured(world, deadQueue, lettersFrom(queue, 1_500))
    await world.letters.discard(ids, ann)
    world.tick(31 * day)
    expect(await world.letters.passes.retention()).toBe(true)
    expect(await world.letters.passes.retention()).toBe(false)
    const filter = { queues: [deadQueue] }
    expect((await world.letters.listArchived({ filter, countMax: 5_000 })).letters).toHaveLength(1_500)

    const other = await createQueuePair(world)
    const more = await captured(world, other.deadQueue, lettersFrom(other.queue, 25))
    await world.letters.discard(more, ann)
    world.tick(31 * day)
    const told: string[] = []
    const done = await world.letters.runRetention({ batchSize: 10, onDone: (each) => told.push(each.queue) })
    expect(done).toEqual([{ queue: other.deadQueue, archived: 25, purged: 0 }])
    expect(told).toEqual([other.deadQueue])
    const rows = await given.storage.listAudit({ target: other.deadQueue, countMax: 9 })
    expect(rows.map(({ action, details }) => [action, details.letters])).toEqual([
      ['letters.archive', 5],
      ['letters.archive', 10],
      ['letters.archive', 10],
    ])
    await expectRefusal(world.letters.runRetention({ batchSize: 0 }), 'BAD_REQUEST')
  })

  it('DEAD letters stay from the moment their dead queue becomes financial, even during a run', async () => {
    world = createTestSystem(given.storage)
    const { deadQueue, ids } = await dead(6)
    const changing = new Proxy(given.storage, {
      get: (store, name) => {
        if (name !== 'write') {
          const part: unknown = Reflect.get(store, name, store)
          return typeof part === 'function' ? part.bind(store) : part
        }
        const write: Storage['write'] = async (commands) => {
          const results = await store.write(commands)
          if (!commands.some(({ op }) => op === 'archive')) return results
          const changes = { letterClass: 'financial' }
          await store.write([{ op: 'update-queue', name: deadQueue, changes, now: world.now() }])
          return results
        }
        return write
      },
    })
    await world.letters.discard(ids.slice(5), ann)
    world.tick(31 * day)
    const { letters } = world.startServer(changing)
    expect(await letters.runRetention({ batchSize: 2 })).toEqual([
      { queue: deadQueue, archived: 3, purged: 0 },
    ])
    const filter = { queues: [deadQueue] }
    const { letters: gone } = await world.letters.listArchived({ filter, countMax: 10 })
    expect(gone.map(({ item }) => item.state).toSorted()).toEqual(['dead', 'dead', 'discarded'])
    const rows = await given.storage.listAudit({ target: deadQueue, action: 'letters.archive', countMax: 9 })
    expect(rows.map(({ details }) => [details.states, details.letters])).toEqual([
      [['done', 'discarded'], 1],
      [['done', 'dead', 'discarded'], 2],
    ])
  })

  it('only one server runs retention at a time', async () => {
    world = createTestSystem(given.storage)
    const { queue, deadQueue } = await createQueuePair(world)
    await world.letters.discard(await captured(world, deadQueue, lettersFrom(queue, 3)), ann)
    world.tick(31 * day)
    const now = world.now()
    const [lock] = await given.storage.write([
      { op: 'acquire-lock', name: 'letters/retention', owner: 'another', now, deadline: now + day },
    ])
    expect(await world.letters.passes.retention()).toBe(false)
    await expectRefusal(world.letters.runRetention({ batchSize: 10 }), 'RETENTION_BUSY')
    if (lock === null) throw new Error('it was free')
    await given.storage.write([{ op: 'release-lock', lock }])
    expect(await world.letters.runRetention({ batchSize: 10 })).toMatchObject([{ archived: 3 }])
  })
})
