/** Letters with large payloads: what is done with many of them is done a few at a time, so that nobody else has to wait long. */
import { afterEach, expect, it } from 'vitest'
import type { NewQueue } from '../../src/core/queue.ts'
import type { Command } from '../../src/storage/contract/storage.ts'
import { describeSome } from '../conformance/stores.ts'
import { day, second } from '../make.ts'
import { ann, aPair, aSpec, aWorld, captured, lettersFrom, type World } from './world.ts'

const large = new Uint8Array(9 * 2 ** 20).fill(97)

describeSome(['SQLite memory', 'PostgreSQL'], 'of large letters', (given) => {
  let world: World
  afterEach(() => world?.close())

  /** Five letters, the first two of which are enough for one step; `steps`: how many letters each write then had. */
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
    world = aWorld(watched)
    const pair = await aPair(world, dead)
    const letters = lettersFrom(pair.queue, 5).map((letter, index) =>
      [0, 1, 4].includes(index) ? { ...letter, payload: large } : letter,
    )
    return { ...pair, steps, ids: await captured(world, pair.deadQueue, letters) }
  }

  it('those that are named are sent and given up a few at a time, and all are answered for', async () => {
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
    'a campaign (%s) takes a few in each step, and all',
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

  it('those that go back by themselves go a few at a time, and all', async () => {
    const backoff = { kind: 'fixed', delayUs: second, jitter: 0 } as const
    const { deadQueue, steps } = await begin({ redrive: { mode: 'auto', redrivesMax: 3, backoff } })
    world.tick(second)
    while (await world.letters.passes.auto());
    expect(steps).toEqual([2, 3])
    expect(await world.letters.count({ filter: { queues: [deadQueue] }, by: ['state'] })).toEqual([
      { state: 'leased', count: 5 },
    ])
  })

  it('those that ended leave a few at a time, and all; so they do from the archive', async () => {
    const { ids, deadQueue } = await begin()
    await world.letters.discard(ids, ann)
    const passes = async (act: () => Promise<boolean>) => {
      const counts: (number | undefined)[][] = []
      for (let isMore = true; isMore; ) {
        isMore = await act()
        const [{ discarded, archived, purged } = {}] = await given.storage.counts({ queue: deadQueue })
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

  it('those that leave on command leave all, too, and are restored a few at a time', async () => {
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
      ids.map((letterId) => ({ letterId, isRestored: true, why: null })),
    )
    expect(steps).toEqual([2, 3])
  })
})
