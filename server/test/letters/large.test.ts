/** Actions on many large letters use small transactions, so that they do not block other writers for long. */
import { afterEach, expect, it } from 'vitest'
import type { NewQueue } from '../../src/core/items/queue.ts'
import type { Command } from '../../src/storage/contract/storage.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { day, second } from '../make.ts'
import {
  ann,
  aSpec,
  captured,
  createQueuePair,
  createTestSystem,
  lettersFrom,
  type TestSystem,
} from './test-system.ts'

const large = new Uint8Array(9 * 2 ** 20).fill(97)

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'large letters', (given) => {
  let world: TestSystem
  afterEach(() => world?.close())

  /**
   * Captures five letters; two of them fill one step. `steps` records the number of letters of each write.
   */
  const begin = async (dead: Partial<NewQueue> = {}) => {
    const steps: number[] = []
    const write = (commands: readonly Command[]) => {
      for (const command of commands) {
        if (command.op === 'redrive' || command.op === 'discard') steps.push(command.letters.length)
        if (command.op === 'restore') steps.push(command.letterIds.length)
      }
      return given.storage.write(commands)
    }
    const watched = new Proxy(given.storage, {
      get: (target, name) => {
        if (name === 'write') return write
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    world = createTestSystem(watched)
    const pair = await createQueuePair(world, dead)
    const letters = lettersFrom(pair.queue, 5).map((letter, index) =>
      [0, 1, 4].includes(index) ? { ...letter, payload: large } : letter,
    )
    return { ...pair, steps, ids: await captured(world, pair.deadQueue, letters) }
  }

  it('large named letters are redriven and discarded in small transactions, each with a result', async () => {
    const { ids, steps } = await begin()
    const how = { target: null, edit: null, isDeadAllowed: false, isCapped: true }
    const sent = await world.letters.redrive(ids.slice(0, 4), how, ann)
    expect(sent.map(({ letterId, isStarted }) => [letterId, isStarted])).toEqual(
      ids.slice(0, 4).map((id) => [id, true]),
    )
    expect(await world.letters.discard(ids.slice(4), ann)).toMatchObject([{ isDiscarded: true }])
    expect(steps).toEqual([2, 2, 1])
  })

  it.each(['redrive', 'discard'] as const)(
    'a campaign (%s) on large letters processes all of them in small steps',
    async (action) => {
      const { deadQueue, steps } = await begin()
      const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { action }), ann)
      await world.work()
      expect(steps).toEqual([2, 3])
      const { counts } = (await world.letters.campaigns.get(campaign.id)) ?? {}
      expect(counts).toMatchObject({
        pending: 0,
        skipped: 0,
        [action === 'redrive' ? 'sent' : 'discarded']: 5,
      })
    },
  )

  it('automatic redrives of large letters use small transactions and send all of them', async () => {
    const backoff = { kind: 'fixed', delayUs: second, jitter: 0 } as const
    const { deadQueue, steps } = await begin({ redrive: { mode: 'auto', redrivesMax: 3, backoff } })
    world.tick(second)
    while (await world.letters.passes.auto());
    expect(steps).toEqual([2, 3])
    expect(await world.letters.count({ filter: { queues: [deadQueue] }, by: ['state'] })).toEqual([
      { state: 'leased', count: 5 },
    ])
  })

  it('retention archives and purges all large letters in small transactions', async () => {
    const { ids, deadQueue } = await begin()
    await world.letters.discard(ids, ann)
    const passes = async (act: () => Promise<boolean>) => {
      const counts: (number | undefined)[][] = []
      for (let isMore = true; isMore; ) {
        isMore = await act()
        const [{ discarded, archived, purged } = {}] = await given.storage.readCounts({ queue: deadQueue })
        counts.push([discarded, archived, purged])
      }
      return counts
    }
    world.tick(30 * day + 1)
    expect(await passes(() => world.letters.passes.retention())).toEqual([
      [3, 2, 0],
      [0, 5, 0],
    ])
    world.tick(365 * day + 1)
    expect(await passes(() => world.letters.passes.retention())).toEqual([
      [0, 3, 2],
      [0, 0, 5],
    ])
  })

  it('a retention run archives all large letters, and a restore uses small transactions', async () => {
    const { ids, deadQueue, steps } = await begin()
    await world.letters.discard(ids, ann)
    world.tick(30 * day + 1)
    expect(await world.letters.runRetention({ batchSize: 1_000 })).toEqual([
      { queue: deadQueue, archived: 5, purged: 0 },
    ])
    const batches = await given.storage.listAudit({
      target: deadQueue,
      action: 'letters.archive',
      countMax: 9,
    })
    expect(batches.map(({ details }) => details.letters)).toEqual([3, 2])
    steps.length = 0
    expect(await world.letters.restore(ids, ann)).toEqual(
      ids.map((letterId) => ({ letterId, isRestored: true, refusal: null })),
    )
    expect(steps).toEqual([2, 3])
  })
})
