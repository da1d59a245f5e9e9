import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { convertToUuid } from '../../src/core/ids/ksuid.ts'
import { previewCampaign } from '../../src/letters/campaigns/preview.ts'
import type { Campaign } from '../../src/letters/letters.ts'
import type { Command } from '../../src/storage/contract/storage.ts'
import { expectRefusal } from '../conformance/support/expect-refusal.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { aFailure, minute, noon, second } from '../make.ts'
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

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'a campaign', (given) => {
  let world: TestSystem
  const begin = async (count: number, dead = {}) => {
    world = createTestSystem(given.storage)
    const pair = await createQueuePair(world, dead)
    const ids = await captured(world, pair.deadQueue, lettersFrom(pair.queue, count))
    return { ...pair, ids }
  }
  afterEach(() => world?.close())
  const now = async ({ id }: Pick<Campaign, 'id'>): Promise<Campaign> => {
    const campaign = await world.letters.campaigns.get(id)
    if (campaign === null) throw new Error('the campaign is gone')
    return campaign
  }
  const actions = async (target: string) =>
    (await given.storage.listAudit({ target, countMax: 100 })).map(
      ({ action, actor }) => `${actor} ${action}`,
    )

  it('a campaign sends every letter of its set and is done when each has an outcome', async () => {
    const { queue, deadQueue } = await begin(2_300)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    expect(campaign).toMatchObject({ state: 'freezing', size: null, actor: 'ann', reason: 'INC-7 is fixed' })
    await world.work()
    expect(await now(campaign)).toMatchObject({
      state: 'running',
      size: 2_300,
      counts: { sent: 2_300, pending: 0 },
    })
    expect(await consume(world, queue, (payload) => !payload.endsWith('00'))).toHaveLength(2_300)
    await world.work()
    expect(await now(campaign)).toMatchObject({
      state: 'done',
      endedAt: noon,
      counts: { pending: 0, sent: 0, resolved: 2_278, failed: 22, unknown: 0, skipped: 0, discarded: 0 },
    })
    const failed = await world.letters.campaigns.listLetters(campaign.id, {
      states: ['failed'],
      countMax: 100,
    })
    expect(failed).toHaveLength(22)
    expect(await actions(campaign.id)).toEqual(['ann campaign.freeze', 'ann campaign.create'])
    const detail = await world.letters.find(failed[0]?.letterId ?? '')
    expect(detail?.item.letter?.redrives).toMatchObject([
      { campaign: { id: campaign.id }, outcome: 'failed' },
    ])
    expect(detail?.audit.map(({ action }) => action)).toEqual(['campaign.freeze', 'campaign.create'])
    expect(await world.letters.passes.campaigns()).toBe(false)
  })

  it('a campaign respects changes to its letters between two steps', async () => {
    const { deadQueue, ids } = await begin(2_300)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    while ((await now(campaign)).counts.sent === 0) await world.letters.passes.campaigns()
    expect((await now(campaign)).counts).toMatchObject({ sent: 1_000, pending: 1_300 })
    const pending = await world.letters.campaigns.listLetters(campaign.id, {
      states: ['pending'],
      countMax: 3,
    })
    const [givenUp = '', sentByHand = '', next = ''] = pending.map(({ letterId }) => letterId)
    await world.letters.discard([givenUp], ann)
    await world.letters.redrive(
      [sentByHand],
      { target: null, edit: null, isDeadAllowed: false, isCapped: true },
      ann,
    )
    await world.work()
    expect(await now(campaign)).toMatchObject({ counts: { sent: 2_298, skipped: 2, pending: 0 } })
    const skipped = await world.letters.campaigns.listLetters(campaign.id, {
      states: ['skipped'],
      countMax: 9,
    })
    expect(skipped.map(({ letterId }) => letterId)).toEqual([givenUp, sentByHand])
    expect(ids).toContain(next)
    const { item } = (await world.letters.find(next)) ?? {}
    expect(item?.letter?.redrives).toHaveLength(1)
  })

  it('a campaign that freezes slowly does not delay other campaigns', async () => {
    const slow = await begin(40)
    const fast = await createQueuePair(world)
    await captured(world, fast.deadQueue, lettersFrom(fast.queue, 40))
    let freezes = 0
    const slowly = new Proxy(given.storage, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        if (key !== 'write') return value.bind(target)
        return async (commands: readonly Command[]) => {
          if (commands.some(({ op }) => op === 'freeze-letters') && ++freezes > 1) await sleep(50)
          return target.write(commands)
        }
      },
    })
    const { letters } = world.startServer(slowly, { campaignSteps: { frozenMax: 2, sentMax: 2 } })
    const quick = await letters.campaigns.create(aSpec(fast.deadQueue), ann)
    while ((await now(quick)).state === 'freezing') await letters.passes.campaigns()
    const resting = await letters.campaigns.create(aSpec(slow.deadQueue, { ratePerSecond: 1_000 }), ann)
    const before = freezes
    while ((await now(quick)).counts.pending > 0) await letters.passes.campaigns()
    expect(freezes - before).toBeGreaterThan(0)
    expect(freezes - before, 'steps of the slow campaign').toBeLessThan(10)
    expect(await now(resting)).toMatchObject({ state: 'freezing' })
    // The slow campaign pauses, but it is not finished: the pass reports that more is left.
    expect(await letters.passes.campaigns()).toBe(true)
  })

  it('a campaign on named letters is frozen immediately and reports why letters are skipped', async () => {
    const { queue, deadQueue, ids } = await begin(5)
    await world.letters.discard(ids.slice(0, 1), ann)
    const missing = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'
    const letterIds = [...ids.toReversed(), missing, ids[1] ?? '', convertToUuid(ids[2] ?? '')]
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { selection: { letterIds } }), ann)
    expect(campaign).toMatchObject({ state: 'running', size: 6, counts: { pending: 6 } })
    await world.work()
    await consume(world, queue)
    await world.work()
    expect(await now(campaign)).toMatchObject({ state: 'done', counts: { resolved: 4, skipped: 2 } })
    const letters = await world.letters.campaigns.listLetters(campaign.id, { countMax: 10 })
    expect(letters.map(({ letterId, state, refusal }) => [letterId, state, refusal])).toEqual([
      [ids[4], 'resolved', ''],
      [ids[3], 'resolved', ''],
      [ids[2], 'resolved', ''],
      [ids[1], 'resolved', ''],
      [ids[0], 'skipped', 'discarded'],
      [missing, 'skipped', 'missing'],
    ])
  })

  it('letters that died after the campaign was created are not selected', async () => {
    const { queue, deadQueue } = await begin(3)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    world.tick(second)
    const late = lettersFrom(queue, 2).map((letter, index) => ({
      ...letter,
      sourceId: `late-${index}`,
      deadLetteredAt: world.now(),
    }))
    await captured(world, deadQueue, late)
    await world.work()
    expect(await now(campaign)).toMatchObject({ size: 3 })
  })

  it('letters that arrive after the campaign was created are not selected, whatever time of death they report', async () => {
    const { queue, deadQueue, ids } = await begin(7)
    const [early = ''] = ids
    await world.letters.discard([early], ann)
    const { storage } = given
    const archive = {
      op: 'archive',
      queue: deadQueue,
      endedBefore: noon + 1,
      countMax: 9,
      now: noon,
    } as const
    await storage.write([archive])
    const inSteps = world.startServer(storage, { campaignSteps: { frozenMax: 2, sentMax: 2 } }).letters
    const campaign = await inSteps.campaigns.create(aSpec(deadQueue), ann)
    world.tick(second)
    await inSteps.passes.campaigns()
    // While it freezes, letters come that died between those of the set, and one comes back from the archive.
    const late = lettersFrom(queue, 20).map((letter, index) => ({ ...letter, sourceId: `late-${index}` }))
    await captured(world, deadQueue, late)
    await world.letters.restore([early], ann)
    await world.work(inSteps)
    expect(await now(campaign)).toMatchObject({ size: 6 })
    const set = await world.letters.campaigns.listLetters(campaign.id, { countMax: 99 })
    expect(set.map(({ letterId }) => letterId)).toEqual(ids.slice(1))
  })

  it('a campaign selects the letters that its preview counts, also with a time of death in the future', async () => {
    const { queue, deadQueue } = await begin(0)
    await captured(world, deadQueue, lettersFrom(queue, 2, { deadLetteredAt: noon + 60 * minute }))
    expect(await world.letters.campaigns.preview(aSpec(deadQueue))).toMatchObject({ count: 2 })
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    await world.work()
    expect(await now(campaign)).toMatchObject({ size: 2, counts: { sent: 2 } })
  })

  it('a campaign sends the rest after its canary letters are resolved', async () => {
    const { queue, deadQueue } = await begin(30)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { canaryCount: 5 }), ann)
    await world.work()
    expect(await now(campaign)).toMatchObject({ state: 'canary', counts: { sent: 5, pending: 25 } })
    expect(await consume(world, queue)).toEqual([0, 1, 2, 3, 4].map((index) => `order ${index}`))
    await world.work()
    expect(await now(campaign)).toMatchObject({ state: 'running', counts: { sent: 25, resolved: 5 } })
  })

  it('a campaign halts if its canary fails and continues when a person resumes it', async () => {
    const { queue, deadQueue } = await begin(30)
    const spec = aSpec(deadQueue, { canaryCount: 5, haltRatio: 0.2 })
    const campaign = await world.letters.campaigns.create(spec, ann)
    await world.work()
    await consume(world, queue, (payload) => payload !== 'order 1' && payload !== 'order 2')
    await world.work()
    expect(await now(campaign)).toMatchObject({
      state: 'halted',
      stateReason: '2 of the 5 canary letters failed again or have an unknown outcome: more than 20 %',
      counts: { pending: 25, resolved: 3, failed: 2 },
    })
    expect(await actions(campaign.id)).toEqual([
      'policy campaign.halt',
      'ann campaign.freeze',
      'ann campaign.create',
    ])
    await world.letters.campaigns.resume(campaign.id, ann)
    await world.work()
    await consume(world, queue)
    await world.work()
    expect(await now(campaign)).toMatchObject({ state: 'done', counts: { resolved: 28, failed: 2 } })
  })

  it('a running campaign halts when too many letters fail again', async () => {
    const { queue, deadQueue } = await begin(100)
    const spec = aSpec(deadQueue, { ratePerSecond: 10, haltRatio: 0.5, haltMin: 20 })
    const campaign = await world.letters.campaigns.create(spec, ann)
    for (let seconds = 0; seconds < 20; seconds++) {
      await world.work()
      await consume(world, queue, () => false)
      world.tick(second)
    }
    const halted = await now(campaign)
    expect(halted).toMatchObject({ state: 'halted', counts: { failed: 20, pending: 80 } })
  })

  it('the rate of a running campaign can be changed, with an audit row and without changing its set', async () => {
    const { deadQueue } = await begin(300)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { ratePerSecond: 10 }), ann)
    const go = async (seconds: number) => {
      for (let tenths = 0; tenths < seconds * 10; tenths++) {
        world.tick(second / 10)
        await world.work()
      }
      return (await now(campaign)).counts.sent
    }
    const slow = await go(5)
    expect(slow).toBeGreaterThan(40)
    expect(slow).toBeLessThanOrEqual(50)
    const changes = { ratePerSecond: 100, haltRatio: 0.5 }
    const adjusted = await world.letters.campaigns.adjust(campaign.id, changes, ann)
    expect(adjusted).toMatchObject({ state: 'running', size: 300, spec: { ...campaign.spec, ...changes } })
    expect((await go(1)) - slow).toBeGreaterThan(90)
    await go(3)
    expect((await now(campaign)).counts).toMatchObject({ sent: 300, pending: 0 })
    const audit = await given.storage.listAudit({
      target: campaign.id,
      action: 'campaign.adjust',
      countMax: 9,
    })
    expect(audit).toMatchObject([
      {
        actor: ann.actor,
        details: {
          from: 'running',
          ...changes,
          before: { ratePerSecond: 10, haltRatio: campaign.spec.haltRatio },
        },
      },
    ])
    await world.letters.campaigns.adjust(campaign.id, changes, ann)
    expect(
      await given.storage.listAudit({ target: campaign.id, action: 'campaign.adjust', countMax: 9 }),
    ).toEqual(audit)
  })

  it('a campaign keeps its rate and ramp across a restart', async () => {
    const { deadQueue } = await begin(400)
    const spec = aSpec(deadQueue, { ratePerSecond: 20, rampUs: 10 * second })
    const campaign = await world.letters.campaigns.create(spec, ann)
    const sent: number[] = []
    for (let seconds = 0; seconds < 15; seconds++) {
      for (let tenths = 0; tenths < 10; tenths++) {
        world.tick(second / 10)
        // Each time as if it had just been started; those before it gave up their lock.
        const { letters } = world.startServer()
        await world.work(letters)
        await letters.close()
      }
      sent.push((await now(campaign)).counts.sent)
    }
    const perSecond = sent.map((count, index) => count - (sent[index - 1] ?? 0))
    expect(perSecond[0]).toBeLessThanOrEqual(2)
    expect(perSecond[4]).toBeGreaterThanOrEqual(7)
    expect(perSecond[4]).toBeLessThanOrEqual(10)
    for (const count of perSecond.slice(11)) {
      expect(count).toBeGreaterThanOrEqual(19)
      expect(count).toBeLessThanOrEqual(21)
    }
    expect((await now(campaign)).rate).toBeGreaterThan(15)
  })

  it('a paused campaign sends nothing while its redrives in progress continue', async () => {
    const { queue, deadQueue } = await begin(20)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { ratePerSecond: 5 }), ann)
    await world.work()
    world.tick(second)
    await world.work()
    const paused = await world.letters.campaigns.pause(campaign.id, { ...ann, reason: 'lunch' })
    expect(paused).toMatchObject({ state: 'paused', stateReason: 'lunch', counts: { sent: 5 } })
    world.tick(minute)
    await world.work()
    await consume(world, queue)
    expect(await now(campaign)).toMatchObject({ state: 'paused', counts: { resolved: 5, pending: 15 } })
    await world.letters.campaigns.resume(campaign.id, ann)
    await world.work()
    // No flood for the time that it stood still.
    expect((await now(campaign)).counts.sent).toBe(0)
    expect(await actions(campaign.id)).toEqual([
      'ann campaign.resume',
      'ann campaign.pause',
      'ann campaign.freeze',
      'ann campaign.create',
    ])
  })

  it('a cancelled campaign skips pending letters and waits for redrives in progress', async () => {
    const { queue, deadQueue } = await begin(20)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { canaryCount: 4 }), ann)
    await world.work()
    const cancelled = await world.letters.campaigns.cancel(campaign.id, { ...ann, reason: 'wrong queue' })
    expect(cancelled).toMatchObject({ state: 'cancelled', stateReason: 'wrong queue', endedAt: null })
    await world.work()
    expect(await now(campaign)).toMatchObject({ counts: { sent: 4, skipped: 16, pending: 0 }, endedAt: null })
    world.tick(second)
    await consume(world, queue)
    await world.work()
    expect(await now(campaign)).toMatchObject({
      state: 'cancelled',
      endedAt: noon + second,
      counts: { resolved: 4, skipped: 16 },
    })
    await expectRefusal(world.letters.campaigns.resume(campaign.id, ann), 'CAMPAIGN_STATE')
    await expectRefusal(
      world.letters.campaigns.cancel('0ujtsYcgvSTl8PAuAdqWYSMnLOv', ann),
      'CAMPAIGN_NOT_FOUND',
    )
  })

  it('letters that a campaign discards name the campaign', async () => {
    const { deadQueue, ids } = await begin(12)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { action: 'discard' }), ann)
    await world.work()
    expect(await now(campaign)).toMatchObject({ state: 'done', counts: { discarded: 12 } })
    const detail = await world.letters.find(ids[0] ?? '')
    expect(detail?.item).toMatchObject({
      state: 'discarded',
      letter: { discardReason: 'INC-7 is fixed', discardCampaign: campaign.id },
    })
    expect(detail?.audit.map(({ action }) => action)).toEqual(['campaign.freeze', 'campaign.create'])
  })

  it('a campaign that matches no letter is done immediately', async () => {
    const { deadQueue } = await begin(0)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    await world.work()
    expect(await now(campaign)).toMatchObject({ state: 'done', size: 0 })
  })

  it('a campaign needs a name, a reason and an existing target', async () => {
    const { deadQueue } = await begin(1)
    const { campaigns } = world.letters
    await expectRefusal(campaigns.create(aSpec(deadQueue, { name: '' }), ann), 'BAD_REQUEST')
    await expectRefusal(campaigns.create(aSpec(deadQueue), { ...ann, reason: ' ' }), 'BAD_REQUEST')
    await expectRefusal(campaigns.create(aSpec(deadQueue, { target: 'nowhere' }), ann), 'TARGET_INVALID')
    await expectRefusal(campaigns.create(aSpec(deadQueue, { target: deadQueue }), ann), 'TARGET_INVALID')
    const [newest] = await world.letters.campaigns.list({ countMax: 1 })
    expect(newest?.spec.selection).not.toEqual(aSpec(deadQueue).selection)
  })

  it('several servers run a campaign as correctly as one', async () => {
    const { queue, deadQueue } = await begin(200)
    const servers = [1, 2, 3].map(
      () => world.startServer(undefined, { campaignSteps: { frozenMax: 30, sentMax: 20 } }).letters,
    )
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue, { canaryCount: 10 }), ann)
    const seen: string[] = []
    for (let rounds = 0; (await now(campaign)).state !== 'done'; rounds++) {
      if (rounds > 200) throw new Error(`does not end: ${JSON.stringify(await now(campaign))}`)
      await Promise.all(servers.map((letters) => letters.passes.campaigns()))
      seen.push(...(await consume(world, queue)))
      // Sooner or later another one gets the lock.
      world.tick(5 * second)
    }
    expect(seen).toHaveLength(200)
    expect(new Set(seen).size).toBe(200)
    expect(await now(campaign)).toMatchObject({ counts: { resolved: 200 } })
  })

  it('a slow server sends nothing after a person paused the campaign', async () => {
    const { deadQueue } = await begin(20)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    let isPaused = false
    const slow = new Proxy(given.storage, {
      get: (storage, name) => {
        const value = Reflect.get(storage, name)
        if (name !== 'write') return typeof value === 'function' ? value.bind(storage) : value
        return async (commands: readonly { op: string }[]) => {
          if (commands.some(({ op }) => op === 'redrive') && !isPaused) {
            isPaused = true
            await world.letters.campaigns.pause(campaign.id, ann)
          }
          return value.call(storage, commands)
        }
      },
    })
    await world.work(world.startServer(slow).letters)
    expect(isPaused).toBe(true)
    expect(await now(campaign)).toMatchObject({ state: 'paused', counts: { pending: 20, sent: 0 } })
  })

  it('watching a campaign yields every change until it ends', async () => {
    const { queue, deadQueue } = await begin(3)
    const campaign = await world.letters.campaigns.create(aSpec(deadQueue), ann)
    const seen: string[] = []
    const watching = (async () => {
      for await (const { state, counts } of world.letters.campaigns.watch(
        campaign.id,
        AbortSignal.timeout(20_000),
      )) {
        seen.push(`${state} ${counts.sent}/${counts.resolved}`)
      }
    })()
    await expect.poll(() => seen).toEqual(['freezing 0/0'])
    await world.work()
    await expect.poll(() => seen.at(-1)).toBe('running 3/0')
    await consume(world, queue)
    await world.work()
    await watching
    expect(seen.at(-1)).toBe('done 0/3')
    const gone = new AbortController()
    gone.abort()
    for await (const _ of world.letters.campaigns.watch(campaign.id, gone.signal))
      throw new Error('not any more')
  })

  it('a preview that stops searching first says that its count is not exact, and counts all on request', async () => {
    const { queue, deadQueue } = await begin(35)
    const spec = aSpec(deadQueue, { selection: { filter: { queues: [deadQueue], text: 'card' } } })
    const parts = { storage: given.storage, now: noon, readLastLeaseCallAt: async () => noon }
    // The time stands still until the first page starts, and is over when the page ends. The reader therefore
    // gets the full time of a step: with less, a busy machine would end the page early.
    let looks = 0
    const elapsedMs = () => (looks++ < 4 ? 0 : looks * 2_000)
    const inexact = await previewCampaign(parts, spec, {}, elapsedMs)
    expect(inexact).toMatchObject({ count: 10, isExact: false, targets: [{ queue, count: 10 }] })
    expect(inexact.warnings[0]).toBe(
      'the count is not exact: at least 10 letters match. The search stopped after 10 letters; ' +
        'set count_exactly to count all of them',
    )
    const exact = await previewCampaign(parts, spec, { isCountedExactly: true }, elapsedMs)
    expect(exact).toMatchObject({ count: 35, isExact: true, targets: [{ queue, count: 35 }] })
    expect(exact.warnings.join()).not.toContain('not exact')
  })

  it('a preview knows of workers that lease from another server, and of those before a restart', async () => {
    const { queue, deadQueue } = await begin(2)
    const idle = /has no active workers/
    const there = world.startServer()
    const warnings = async () => (await world.letters.campaigns.preview(aSpec(deadQueue))).warnings.join('\n')
    expect(await warnings()).toContain(`queue ${queue} has no active workers: none ever asked for items`)
    const leased = there.engine.lease(queue, { clientId: 'w', countMax: 1, timeoutMs: 1 })
    await expect(leased).rejects.toMatchObject({ code: 'LEASE_TIMEOUT' })
    await there.engine.recordLeaseCalls()
    expect(await warnings()).not.toMatch(idle)
    await there.engine.close()
    world.tick(4 * minute)
    expect(await warnings()).not.toMatch(idle)
    world.tick(2 * minute)
    expect(await warnings()).toContain(`queue ${queue} has no active workers: none asked for items for 6 min`)
  })

  it('a preview changes nothing and warns about skipped letters and targets', async () => {
    const { queue, deadQueue, ids } = await begin(15, { letterClass: 'financial' })
    await captured(
      world,
      deadQueue,
      lettersFrom('gone', 2, { failure: aFailure({ message: 'other' }), deadLetteredAt: noon - 60 * minute }),
    )
    await world.letters.discard(ids.slice(0, 1), ann)
    const how = { target: null, edit: null, isDeadAllowed: false, isCapped: true }
    await world.letters.redrive(ids.slice(1, 2), how, ann)
    await given.storage.write([{ op: 'update-queue', name: queue, changes: { isPaused: true }, now: noon }])
    const before = await given.storage.listAudit({ countMax: 1 })
    const preview = await world.letters.campaigns.preview(aSpec(deadQueue))
    expect(preview).toMatchObject({
      count: 15,
      isExact: true,
      byState: { waiting: 15 },
      targets: [
        { queue, count: 13 },
        { queue: 'gone', count: 2 },
      ],
    })
    expect(preview.sample).toHaveLength(10)
    const warnings = preview.warnings.join('\n')
    expect(warnings).toContain('queue gone does not exist: its 2 letters will be skipped')
    expect(warnings).toContain(`queue ${queue} is paused`)
    expect(warnings).toContain(
      '1 letters are left out because a redrive is in progress or a consumer holds them',
    )
    expect(warnings).toContain('class financial')
    expect(warnings).toMatch(
      /group \d+ \(card <n> was refused\) still receives letters, the last one 0 min ago/,
    )
    const searched = await world.letters.campaigns.preview(
      aSpec(deadQueue, { selection: { filter: { queues: [deadQueue], text: 'CARD' } } }),
    )
    expect(searched).toMatchObject({ count: 13, isExact: true, targets: [{ queue, count: 13 }] })
    const named = await world.letters.campaigns.preview(aSpec(deadQueue, { selection: { letterIds: ids } }))
    expect(named).toMatchObject({ count: 15, byState: { waiting: 13, discarded: 1, leased: 1 } })
    expect(named.warnings.join('\n')).toContain('1 of the letters named will be skipped: discarded')
    expect(named.warnings.join('\n')).toContain('1 of the letters named will be skipped: redriving')
    expect(await given.storage.listAudit({ countMax: 1 })).toEqual(before)
  })
})
