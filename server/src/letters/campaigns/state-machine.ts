/**
 * What a campaign does next: a pure function of its document, the counts of its set and the time.
 *
 *     freezing ──▶ canary ──▶ running ──▶ done
 *         │           │          │
 *         └───────────┴──────────┴──▶ paused, halted ──▶ running, or freezing
 *                        any of them ──▶ cancelled
 *
 * Nothing here remembers anything: a server that was killed, or another one, comes to the same step.
 */
import { type Instant, usPerSecond } from '../../core/instant.ts'
import { KnownError } from '../../errors.ts'
import type { CampaignCounts } from '../../storage/contract/campaigns.ts'
import type { LetterCursor } from '../../storage/contract/letters.ts'
import type { CampaignChanges, CampaignSpec, CampaignState } from '../letters.ts'
import { stepLettersMax } from '../parts.ts'
import { fillPace, type Pace, rateAt, spendPace, startPace } from './pace.ts'
import { checkRamp } from './spec.ts'

/** All that is known of a campaign, besides the counts of its set. */
export type CampaignFacts = Readonly<{
  spec: CampaignSpec
  state: CampaignState
  stateReason: string
  actor: string
  reason: string
  createdAt: Instant
  updatedAt: Instant
  startedAt: Instant | null
  endedAt: Instant | null
  size: number | null
  /** How far the freezing got. */
  frozenUntil: LetterCursor | null
  /** Places up to this one had their turn; null: none. */
  placeDone: number | null
  pace: Pace
  /** Ended when a person last said that it shall go on: what went wrong before does not halt it again. */
  overlooked: Tally
  /** Sent per second, the newest last. */
  recent: readonly (readonly [second: number, count: number])[]
}>
/** `bad`: failed again, or unknown. */
type Tally = Readonly<{ ended: number; bad: number }>

export type Step =
  /** Not before time passes or something ends. */
  | Readonly<{ kind: 'wait' }>
  /** Only the document changes. */
  | Readonly<{ kind: 'become'; facts: CampaignFacts }>
  | Readonly<{ kind: 'freeze' }>
  /** `facts`: the document once so many are sent. */
  | Readonly<{ kind: 'send'; countMax: number }>
  | Readonly<{ kind: 'skip' }>

const wait: Step = { kind: 'wait' }

export function nextStep(
  facts: CampaignFacts,
  counts: CampaignCounts,
  now: Instant,
  sentMax = stepLettersMax,
): Step {
  switch (facts.state) {
    case 'paused':
    case 'halted':
    case 'done':
      return wait
    case 'cancelled':
      if (facts.endedAt !== null) return wait
      if (counts.pending > 0) return { kind: 'skip' }
      return counts.sent > 0 ? wait : { kind: 'become', facts: { ...facts, ...ended(facts, counts, now) } }
    case 'freezing':
      return { kind: 'freeze' }
    case 'canary':
      return canaryStep(facts, counts, now, sentMax)
    case 'running':
      return runningStep(facts, counts, now, sentMax)
  }
}

function canaryStep(facts: CampaignFacts, counts: CampaignCounts, now: Instant, sentMax: number): Step {
  const { canaryCount, haltRatio } = facts.spec
  const { bad } = tallyOf(counts)
  const started = startedOf(counts)
  const size = Math.min(canaryCount, started + counts.pending)
  // As soon as it cannot end well any more: no need to see the others fail, too.
  if (bad > 0 && bad > haltRatio * size) {
    return halt(facts, `of the ${size} letters sent first ${bad} failed again or are unknown`, now)
  }
  if (started < canaryCount && counts.pending > 0)
    return sendStep(facts, Math.min(canaryCount - started, sentMax), now)
  if (counts.sent > 0) return wait
  const running: CampaignFacts = { ...facts, state: 'running', pace: startPace(now), updatedAt: now }
  return { kind: 'become', facts: running }
}

function runningStep(facts: CampaignFacts, counts: CampaignCounts, now: Instant, sentMax: number): Step {
  if (counts.pending === 0) {
    if (counts.sent > 0) return wait
    return { kind: 'become', facts: { ...facts, state: 'done', ...ended(facts, counts, now) } }
  }
  const tally = tallyOf(counts)
  const since = { ended: tally.ended - facts.overlooked.ended, bad: tally.bad - facts.overlooked.bad }
  const { haltRatio, haltMin } = facts.spec
  if (since.ended >= Math.max(haltMin, 1) && since.bad > haltRatio * since.ended) {
    return halt(facts, `of ${since.ended} letters that ended ${since.bad} failed again or are unknown`, now)
  }
  return sendStep(facts, Math.min(counts.pending, sentMax), now)
}

/**
 * Sends nothing before it is worth a step: right after one there would always be a letter or two that may go, and so a
 * campaign would be at it all the time, however slow it is to be.
 */
function sendStep(facts: CampaignFacts, countMax: number, now: Instant): Step {
  const speed = speedOf(facts)
  const tokens = Math.floor(fillPace(facts.pace, speed, now).tokens)
  const worth = Math.max(Math.floor((rateAt(speed, now - facts.pace.since) * stepUs) / usPerSecond), 1)
  const count = Math.min(countMax, tokens)
  return count < Math.min(countMax, worth) ? wait : { kind: 'send', countMax: count }
}
const stepUs = 100_000

/** The few that go first go at the full rate: the ramp begins with the rest. */
function speedOf({ spec, state }: CampaignFacts): Pick<CampaignSpec, 'ratePerSecond' | 'rampUs'> {
  return state === 'canary' ? { ratePerSecond: spec.ratePerSecond, rampUs: 0 } : spec
}

/** The document after so many had their turn, the last of them at that place. */
export function afterSending(
  facts: CampaignFacts,
  sent: Readonly<{ count: number; placeDone: number }>,
  now: Instant,
): CampaignFacts {
  const pace = spendPace(fillPace(facts.pace, speedOf(facts), now), sent.count)
  return {
    ...facts,
    placeDone: sent.placeDone,
    pace,
    recent: withSent(facts.recent, sent.count, now),
    updatedAt: now,
  }
}

/** The document once every letter of the set is known. */
export function afterFreezing(facts: CampaignFacts, size: number, now: Instant): CampaignFacts {
  const hasCanary = facts.spec.action === 'redrive' && facts.spec.canaryCount > 0
  const state = hasCanary ? 'canary' : 'running'
  return { ...facts, state, size, frozenUntil: null, startedAt: now, pace: startPace(now), updatedAt: now }
}

/**
 * The new speed holds from now on: what was not sent at the one before is not made up for. A ramp that is given begins now;
 * without one, that under way goes on to the new rate.
 */
export function adjust(facts: CampaignFacts, changes: CampaignChanges, now: Instant): CampaignFacts {
  if (facts.state === 'done' || facts.state === 'cancelled') throw notFrom(facts, 'changed')
  // As fast as it goes has no ramp.
  const rampUs = changes.ratePerSecond === 0 ? 0 : facts.spec.rampUs
  const spec = { ...facts.spec, rampUs, ...changes }
  checkRamp(spec)
  const names = Object.keys(changes) as (keyof CampaignChanges)[]
  if (names.every((name) => spec[name] === facts.spec[name])) return facts
  return { ...facts, spec, pace: adjustedPace(facts.pace, changes, now), updatedAt: now }
}

function adjustedPace(pace: Pace, { ratePerSecond, rampUs }: CampaignChanges, now: Instant): Pace {
  if (rampUs !== undefined) return startPace(now)
  return ratePerSecond === undefined ? pace : { ...pace, at: now, tokens: 0 }
}

export function pause(facts: CampaignFacts, reason: string, now: Instant): CampaignFacts {
  if (facts.state === 'paused') return facts
  if (!isActive(facts.state)) throw notFrom(facts, 'paused')
  return { ...facts, state: 'paused', stateReason: reason, updatedAt: now }
}

export function resume(facts: CampaignFacts, counts: CampaignCounts, now: Instant): CampaignFacts {
  if (isActive(facts.state)) return facts
  if (facts.state !== 'paused' && facts.state !== 'halted') throw notFrom(facts, 'resumed')
  // Who resumes has looked at the first ones. While the set was not known there were none to look at.
  const state = facts.size === null ? 'freezing' : 'running'
  const overlooked = tallyOf(counts)
  return { ...facts, state, stateReason: '', pace: startPace(now), overlooked, updatedAt: now }
}

export function cancel(facts: CampaignFacts, reason: string, now: Instant): CampaignFacts {
  if (facts.state === 'cancelled') return facts
  if (facts.state === 'done') throw notFrom(facts, 'cancelled')
  return { ...facts, state: 'cancelled', stateReason: reason, updatedAt: now }
}

export function isActive(state: CampaignState): boolean {
  return state === 'freezing' || state === 'canary' || state === 'running'
}

/** How the store finds it. A cancelled one is worked on until its set has ended. */
export function storedState(facts: CampaignFacts): string {
  return facts.state === 'cancelled' && facts.endedAt === null ? 'cancelling' : facts.state
}
export const workedOnStates = ['freezing', 'canary', 'running', 'cancelling'] as const

const recentSeconds = 10

/** Sent per second over the last ten, or since the start. */
export function rateOf(facts: Pick<CampaignFacts, 'recent' | 'startedAt'>, now: Instant): number {
  const second = Math.floor(now / usPerSecond)
  const sum = facts.recent.reduce(
    (total, [at, count]) => (at > second - recentSeconds ? total + count : total),
    0,
  )
  const elapsed = (now - (facts.startedAt ?? now)) / usPerSecond
  return Math.round((sum / Math.min(Math.max(elapsed, 1), recentSeconds)) * 10) / 10
}

function withSent(recent: CampaignFacts['recent'], count: number, now: Instant): CampaignFacts['recent'] {
  const second = Math.floor(now / usPerSecond)
  const kept = recent.filter(([at]) => at > second - recentSeconds)
  const last = kept.at(-1)
  if (last?.[0] === second) return [...kept.slice(0, -1), [second, last[1] + count]]
  return [...kept, [second, count]]
}

function ended(
  { size }: CampaignFacts,
  counts: CampaignCounts,
  now: Instant,
): Pick<CampaignFacts, 'endedAt' | 'updatedAt' | 'size'> {
  return { endedAt: now, updatedAt: now, size: size ?? sizeOf(counts) }
}

function halt(facts: CampaignFacts, what: string, now: Instant): Step {
  const bound = `more than ${Math.round(facts.spec.haltRatio * 1_000) / 10} %`
  return {
    kind: 'become',
    facts: { ...facts, state: 'halted', stateReason: `${what}: ${bound}`, updatedAt: now },
  }
}

function notFrom({ state }: CampaignFacts, wished: string): KnownError {
  return new KnownError('CAMPAIGN_STATE', `the campaign is ${state}: it cannot be ${wished}`)
}

function tallyOf({ resolved, failed, unknown }: CampaignCounts): Tally {
  return { ended: resolved + failed + unknown, bad: failed + unknown }
}

function startedOf({ sent, resolved, failed, unknown }: CampaignCounts): number {
  return sent + resolved + failed + unknown
}

export function sizeOf(counts: CampaignCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
