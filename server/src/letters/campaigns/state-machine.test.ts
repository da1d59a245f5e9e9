import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { noon, second } from '../../../test/make.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { CampaignCounts } from '../../storage/contract/campaigns.ts'
import type { CampaignSpec } from '../letters.ts'
import { decodeDocument, encodeDocument } from './document.ts'
import { startPace } from './pace.ts'
import {
  adjust,
  applyFreezing,
  applySending,
  type CampaignFacts,
  cancel,
  measureRate,
  pause,
  planStep,
  resume,
  toStoredState,
} from './state-machine.ts'

const aSpec = (changes: Partial<CampaignSpec> = {}): CampaignSpec => ({
  name: 'after the fix',
  action: 'redrive',
  selection: { filter: { queues: ['orders-dead'] } },
  target: null,
  isDeadAllowed: false,
  canaryCount: 0,
  ratePerSecond: 0,
  rampUs: 0,
  haltRatio: 0.2,
  haltMin: 10,
  limit: null,
  expectedCount: null,
  ...changes,
})
const facts = (changes: Partial<CampaignFacts> = {}, spec: Partial<CampaignSpec> = {}): CampaignFacts => ({
  spec: aSpec(spec),
  state: 'running',
  stateReason: '',
  actor: 'ann',
  reason: 'INC-1',
  createdAt: noon,
  updatedAt: noon,
  startedAt: noon,
  endedAt: null,
  size: 100,
  frozenUntil: null,
  positionDone: null,
  pace: startPace(noon),
  overlooked: { ended: 0, bad: 0 },
  recent: [],
  ...changes,
})
const counts = (changes: Partial<CampaignCounts> = {}): CampaignCounts => ({
  pending: 0,
  sent: 0,
  resolved: 0,
  failed: 0,
  unknown: 0,
  skipped: 0,
  discarded: 0,
  ...changes,
})

describe('a campaign that is adjusted', () => {
  const sentAt = (of: CampaignFacts, at: number) => {
    const step = planStep(of, counts({ pending: 5_000 }), at)
    return step.kind === 'send' ? step.countMax : 0
  }

  it('an adjusted campaign sends at the new rate from then on and does not catch up', () => {
    const slow = facts({}, { ratePerSecond: 2 })
    const quick = adjust(slow, { ratePerSecond: 200 }, noon + 60 * second)
    expect(quick.spec).toEqual({ ...slow.spec, ratePerSecond: 200 })
    expect(sentAt(quick, noon + 60 * second)).toBe(0)
    expect(sentAt(quick, noon + 60.5 * second)).toBe(100)
    const unbound = facts()
    expect(sentAt(adjust(unbound, { ratePerSecond: 10 }, noon), noon + second)).toBe(10)
    expect(sentAt(adjust(quick, { ratePerSecond: 0 }, noon + 61 * second), noon + 61 * second)).toBe(1_000)
  })

  it('a new ramp starts now; without one, the current ramp continues', () => {
    const ramping = facts({}, { ratePerSecond: 100, rampUs: 10 * second })
    const restarted = adjust(ramping, { rampUs: 20 * second }, noon + 10 * second)
    expect(sentAt(restarted, noon + 20 * second)).toBe(50)
    const on = adjust(ramping, { ratePerSecond: 200 }, noon + 5 * second)
    expect(sentAt(on, noon + 6 * second)).toBe(110)
  })

  it('an adjusted campaign without a rate has no ramp', () => {
    expect(() => adjust(facts(), { rampUs: second }, noon)).toThrow('no effect without a rate')
    const ramping = facts({}, { ratePerSecond: 100, rampUs: 10 * second })
    expect(adjust(ramping, { ratePerSecond: 0 }, noon).spec).toMatchObject({ ratePerSecond: 0, rampUs: 0 })
  })

  it('an adjusted campaign halts by the new bounds and keeps its pace if only they change', () => {
    const going = facts({}, { ratePerSecond: 10 })
    const strict = adjust(going, { haltRatio: 0, haltMin: 1 }, noon + second)
    expect(strict.pace).toEqual(going.pace)
    expect(planStep(strict, counts({ pending: 9, failed: 1 }), noon + second)).toMatchObject({
      facts: { state: 'halted' },
    })
  })

  it('adjusting keeps the state, changes nothing without changes, and is refused after the end', () => {
    const going = facts({}, { ratePerSecond: 10 })
    expect(adjust(going, { ratePerSecond: 10, haltMin: 10 }, noon + 1)).toBe(going)
    for (const state of ['freezing', 'canary', 'paused', 'halted'] as const) {
      expect(adjust(facts({ state }), { ratePerSecond: 1 }, noon)).toMatchObject({ state })
    }
    for (const state of ['done', 'cancelled'] as const) {
      expect(() => adjust(facts({ state }), { ratePerSecond: 1 }, noon)).toThrow(`the campaign is ${state}`)
    }
  })
})

describe('a campaign that is running', () => {
  it('a running campaign sends up to 1,000 letters per step and is done when each has an outcome', () => {
    expect(planStep(facts(), counts({ pending: 5_000 }), noon)).toEqual({ kind: 'send', countMax: 1_000 })
    expect(planStep(facts(), counts({ sent: 1, resolved: 99 }), noon)).toEqual({ kind: 'wait' })
    expect(planStep(facts(), counts({ resolved: 100 }), noon + 1)).toMatchObject({
      kind: 'update',
      facts: { state: 'done', endedAt: noon + 1 },
    })
  })

  it('a running campaign halts if too many ended letters failed or are unknown, once enough have ended', () => {
    const of = (ended: Partial<CampaignCounts>) => planStep(facts(), counts({ pending: 50, ...ended }), noon)
    expect(of({ resolved: 0, failed: 9 })).toMatchObject({ kind: 'send' })
    expect(of({ resolved: 8, failed: 2 })).toMatchObject({ kind: 'send' })
    expect(of({ resolved: 7, failed: 2, unknown: 1 })).toMatchObject({
      kind: 'update',
      facts: {
        state: 'halted',
        stateReason: '3 of 10 ended letters failed again or have an unknown outcome: more than 20 %',
      },
    })
  })

  it('a resumed campaign does not halt for failures before the resume', () => {
    const bad = counts({ pending: 50, failed: 10 })
    const resumed = resume(facts({ state: 'halted' }), bad, noon)
    expect(resumed).toMatchObject({ state: 'running', overlooked: { ended: 10, bad: 10 } })
    expect(planStep(resumed, bad, noon)).toMatchObject({ kind: 'send' })
    expect(planStep(resumed, { ...bad, failed: 20 }, noon)).toMatchObject({ facts: { state: 'halted' } })
  })

  it('a running campaign waits for its rate', () => {
    const paced = facts({}, { ratePerSecond: 10 })
    expect(planStep(paced, counts({ pending: 50 }), noon)).toEqual({ kind: 'wait' })
    expect(planStep(paced, counts({ pending: 50 }), noon + second / 2)).toEqual({ kind: 'send', countMax: 5 })
    const after = applySending(paced, { count: 5, positionDone: 5 }, noon + second / 2)
    expect(planStep(after, counts({ pending: 45 }), noon + second / 2)).toEqual({ kind: 'wait' })
    expect(after).toMatchObject({ positionDone: 5, recent: [[noon / second, 5]] })
    expect(measureRate(after, noon + second)).toBe(5)
    expect(measureRate(after, noon + 20 * second)).toBe(0)
  })

  it('a running campaign waits until a step is worth it, but not for more letters than are pending', () => {
    const paced = facts({}, { ratePerSecond: 1_000 })
    const many = counts({ pending: 5_000 })
    expect(planStep(paced, many, noon + second * 0.09)).toEqual({ kind: 'wait' })
    expect(planStep(paced, many, noon + second * 0.1)).toEqual({ kind: 'send', countMax: 100 })
    expect(planStep(paced, counts({ pending: 7 }), noon + second * 0.006)).toEqual({ kind: 'wait' })
    expect(planStep(paced, counts({ pending: 7 }), noon + second * 0.01)).toEqual({
      kind: 'send',
      countMax: 7,
    })
  })
})

describe('the letters that go first', () => {
  const canary = facts(
    { state: 'canary' },
    { canaryCount: 10, haltRatio: 0.1, rampUs: 100 * second, ratePerSecond: 100 },
  )
  const of = (ended: Partial<CampaignCounts>) => planStep(canary, counts(ended), noon + second)

  it('the canary sends exactly canaryCount letters at the full rate, not counting skipped ones', () => {
    expect(of({ pending: 100 })).toEqual({ kind: 'send', countMax: 10 })
    expect(of({ pending: 90, sent: 6, skipped: 4 })).toEqual({ kind: 'send', countMax: 4 })
    expect(of({ pending: 90, sent: 10 })).toEqual({ kind: 'wait' })
  })

  it('the campaign continues after all canary letters are resolved', () => {
    expect(of({ pending: 90, resolved: 9, sent: 1 })).toEqual({ kind: 'wait' })
    expect(of({ pending: 90, resolved: 9, failed: 1 })).toMatchObject({
      facts: { state: 'running', pace: { since: noon + second, tokens: 0 } },
    })
  })

  it('the campaign halts as soon as the canary cannot succeed', () => {
    expect(of({ pending: 90, sent: 8, failed: 2 })).toMatchObject({ facts: { state: 'halted' } })
  })

  it('the canary can be the whole set', () => {
    expect(of({ resolved: 3 })).toMatchObject({ facts: { state: 'running' } })
    expect(of({ sent: 2, unknown: 1 })).toMatchObject({ facts: { state: 'halted' } })
  })
})

describe('a person', () => {
  it('a resume after a pause skips the rest of the canary', () => {
    const paused = pause(facts({ state: 'canary', positionDone: 2 }, { canaryCount: 5 }), 'lunch', noon + 1)
    expect(paused).toMatchObject({ state: 'paused', stateReason: 'lunch' })
    expect(planStep(paused, counts({ pending: 9 }), noon)).toEqual({ kind: 'wait' })
    expect(resume(paused, counts(), noon + 2)).toMatchObject({ state: 'running', stateReason: '' })
  })

  it('a resume before the first letter was sent starts with the canary', () => {
    const paused = pause(facts({ state: 'canary', positionDone: null }, { canaryCount: 5 }), '', noon + 1)
    expect(resume(paused, counts(), noon + 2)).toMatchObject({ state: 'canary' })
  })

  it('a resume continues freezing where it stopped', () => {
    const paused = pause(facts({ state: 'freezing', size: null }), '', noon)
    expect(resume(paused, counts(), noon)).toMatchObject({ state: 'freezing' })
  })

  it('a cancelled campaign skips pending letters and waits for redrives in progress', () => {
    const cancelled = cancel(facts(), 'wrong queue', noon)
    expect(toStoredState(cancelled)).toBe('cancelling')
    expect(planStep(cancelled, counts({ pending: 5, sent: 2 }), noon)).toEqual({ kind: 'skip' })
    expect(planStep(cancelled, counts({ skipped: 5, sent: 2 }), noon)).toEqual({ kind: 'wait' })
    const over = planStep(cancelled, counts({ skipped: 5, resolved: 2 }), noon + 9)
    expect(over).toMatchObject({ kind: 'update', facts: { state: 'cancelled', endedAt: noon + 9 } })
    expect(toStoredState((over as { facts: CampaignFacts }).facts)).toBe('cancelled')
  })

  it('actions that do not fit the state are refused; repeated actions change nothing', () => {
    const done = facts({ state: 'done' })
    for (const act of [
      () => pause(done, '', noon),
      () => resume(done, counts(), noon),
      () => cancel(done, '', noon),
    ]) {
      expect(act).toThrow('the campaign is done')
    }
    const halted = facts({ state: 'halted' })
    expect(() => pause(halted, '', noon)).toThrow('cannot be paused')
    const paused = facts({ state: 'paused' })
    expect(pause(paused, 'again', noon)).toBe(paused)
    const running = facts()
    expect(resume(running, counts(), noon)).toBe(running)
  })
})

describe('a frozen set', () => {
  it('a frozen set starts with the canary, unless there is none', () => {
    const freezing = facts({ state: 'freezing', size: null, startedAt: null })
    const started = (spec: Partial<CampaignSpec>) =>
      applyFreezing({ ...freezing, spec: aSpec(spec) }, 7, noon + 5)
    expect(started({ canaryCount: 3 })).toMatchObject({ state: 'canary', size: 7, startedAt: noon + 5 })
    expect(started({})).toMatchObject({ state: 'running' })
    expect(started({ canaryCount: 3, action: 'discard' })).toMatchObject({ state: 'canary' })
  })

  it('a frozen set of another size than expected halts the campaign before its first letter', () => {
    const freezing = facts({ state: 'freezing', size: null, startedAt: null }, { expectedCount: 8 })
    const halted = applyFreezing(freezing, 7, noon + 5)
    expect(halted).toMatchObject({
      state: 'halted',
      size: 7,
      stateReason: 'the frozen set has 7 letters; expected_count is 8',
    })
    expect(planStep(halted, counts({ pending: 7 }), noon + 6)).toEqual({ kind: 'wait' })
    expect(applyFreezing(freezing, 8, noon + 5)).toMatchObject({ state: 'running', stateReason: '' })
  })
})

describe('any campaign', () => {
  it('a campaign is unchanged after it was stored as JSON', () => {
    const given = facts({}, { selection: { filter: { key: new Uint8Array([0, 255]), states: ['dead'] } } })
    expect(decodeDocument({ id: 'c1', document: JSON.parse(JSON.stringify(encodeDocument(given))) })).toEqual(
      given,
    )
  })

  /** For every behaviour of the workers, the campaign ends: nothing is sent twice, nothing is left. */
  it('every campaign ends and sends each letter once', () => {
    const campaigns = fc.record({
      size: fc.integer({ min: 0, max: 3_000 }),
      canaryCount: fc.integer({ min: 0, max: 50 }),
      ratePerSecond: fc.constantFrom(0, 100, 1_000),
      failures: fc.double({ min: 0, max: 1, noNaN: true }),
      skips: fc.double({ min: 0, max: 0.9, noNaN: true }),
    })
    fc.assert(
      fc.property(campaigns, (behaviour) => {
        const { taken, letters } = runToEnd(behaviour)
        expect(taken).toBe(behaviour.size)
        expect(letters.pending + letters.sent).toBe(0)
      }),
    )
  })
})

/** `failures` and `skips`: the shares of letters that fail again and that are skipped. */
type Behaviour = Readonly<{
  size: number
  canaryCount: number
  ratePerSecond: number
  failures: number
  skips: number
}>

/** `taken`: the number of letters that were sent or skipped. */
type Run = { campaign: CampaignFacts; letters: CampaignCounts; taken: number; now: Instant }

function runToEnd(behaviour: Behaviour): Run {
  const { size, canaryCount, ratePerSecond } = behaviour
  const campaign = applyFreezing(facts({}, { canaryCount, ratePerSecond }), size, noon)
  const run: Run = { campaign, letters: counts({ pending: size }), taken: 0, now: noon }
  for (let steps = 0; run.campaign.state !== 'done'; steps++) {
    if (steps > 2_000) throw new Error(`does not end: ${JSON.stringify(run)}`)
    if (run.campaign.state === 'halted') run.campaign = resume(run.campaign, run.letters, run.now)
    const step = planStep(run.campaign, run.letters, run.now)
    if (step.kind === 'update') run.campaign = step.facts
    else if (step.kind === 'send') send(run, step.countMax, behaviour.skips)
    else endRedrives(run, behaviour.failures)
  }
  return run
}

function send(run: Run, countMax: number, skips: number): void {
  const { letters } = run
  const count = Math.min(countMax, letters.pending)
  const skipped = Math.floor(count * skips)
  run.taken += count
  run.campaign = applySending(run.campaign, { count, positionDone: run.taken }, run.now)
  run.letters = {
    ...letters,
    pending: letters.pending - count,
    skipped: letters.skipped + skipped,
    sent: letters.sent + count - skipped,
  }
}

/** One second later all redrives that are in progress have ended. */
function endRedrives(run: Run, failures: number): void {
  const { letters } = run
  const failed = Math.round(letters.sent * failures)
  run.now += second
  run.letters = {
    ...letters,
    sent: 0,
    failed: letters.failed + failed,
    resolved: letters.resolved + letters.sent - failed,
  }
}
