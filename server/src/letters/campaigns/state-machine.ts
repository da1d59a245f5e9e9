/**
 * Decides the next step of a campaign: a pure function of its document, the counts of its set and the time.
 *
 *     freezing ──▶ canary ──▶ running ──▶ done
 *         │           │          │
 *         └───────────┴──────────┴──▶ paused, halted ──▶ running, or freezing
 *                        any of them ──▶ cancelled
 *
 * It keeps no state of its own, so after a crash this or another server computes the same step.
 */
import { type Instant, usPerSecond } from '../../core/time/instant.ts'
import { KnownError } from '../../errors.ts'
import type { CampaignCounts } from '../../storage/contract/campaigns.ts'
import type { LetterCursor } from '../../storage/contract/letters.ts'
import type { CampaignChanges, CampaignSpec, CampaignState } from '../letters.ts'
import { stepLettersMax } from '../parts.ts'
import { computeRate, fillPace, type Pace, spendPace, startPace } from './pace.ts'
import { checkRamp } from './spec.ts'

/** The complete state of a campaign, except the counts of its set. */
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
  /** The last letter that was frozen, while the set is being frozen. */
  frozenUntil: LetterCursor | null
  /** Letters up to this place of the set were sent or skipped; null: none. */
  positionDone: number | null
  pace: Pace
  /** Counts at the last resume: failures before it do not halt the campaign again. */
  overlooked: OutcomeCounts
  /** Letters sent in each of the last seconds, newest last. */
  recent: readonly (readonly [second: number, count: number])[]
}>
/** `bad`: failed again, or outcome unknown. */
type OutcomeCounts = Readonly<{ ended: number; bad: number }>

export type Step =
  /** Nothing to do until time passes or a redrive ends. */
  | Readonly<{ kind: 'wait' }>
  /** Only the document changes. */
  | Readonly<{ kind: 'update'; facts: CampaignFacts }>
  | Readonly<{ kind: 'freeze' }>
  | Readonly<{ kind: 'send'; countMax: number }>
  | Readonly<{ kind: 'skip' }>

const wait: Step = { kind: 'wait' }

export function planStep(
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
      return counts.sent > 0 ? wait : { kind: 'update', facts: { ...facts, ...toEnded(facts, counts, now) } }
    case 'freezing':
      return { kind: 'freeze' }
    case 'canary':
      return planCanary(facts, counts, now, sentMax)
    case 'running':
      return planRunning(facts, counts, now, sentMax)
  }
}

function planCanary(facts: CampaignFacts, counts: CampaignCounts, now: Instant, sentMax: number): Step {
  const { canaryCount, haltRatio } = facts.spec
  const { bad } = countOutcomes(counts)
  const started = countStarted(counts) + counts.discarded
  const size = Math.min(canaryCount, started + counts.pending)
  // Halt as soon as the canary cannot succeed any more: the other letters need not fail, too.
  if (bad > 0 && bad > haltRatio * size) {
    return halt(facts, `${bad} of the ${size} canary letters failed again or have an unknown outcome`, now)
  }
  if (started < canaryCount && counts.pending > 0)
    return sendStep(facts, Math.min(canaryCount - started, sentMax), now)
  if (counts.sent > 0) return wait
  // A discard has no outcome to wait for: a person checks the letters that were discarded.
  if (facts.spec.action === 'discard' && counts.pending > 0) return pauseAfterCanary(facts, counts, now)
  const running: CampaignFacts = { ...facts, state: 'running', pace: startPace(now), updatedAt: now }
  return { kind: 'update', facts: running }
}

function pauseAfterCanary(facts: CampaignFacts, counts: CampaignCounts, now: Instant): Step {
  const stateReason =
    `the canary is done: ${counts.discarded} letters were discarded. Check them, then resume to discard the ` +
    `other ${counts.pending}, or cancel and restore the letters`
  return { kind: 'update', facts: { ...facts, state: 'paused', stateReason, updatedAt: now } }
}

function planRunning(facts: CampaignFacts, counts: CampaignCounts, now: Instant, sentMax: number): Step {
  if (counts.pending === 0) {
    if (counts.sent > 0) return wait
    return { kind: 'update', facts: { ...facts, state: 'done', ...toEnded(facts, counts, now) } }
  }
  const outcomes = countOutcomes(counts)
  const since = { ended: outcomes.ended - facts.overlooked.ended, bad: outcomes.bad - facts.overlooked.bad }
  const { haltRatio, haltMin } = facts.spec
  if (since.ended >= Math.max(haltMin, 1) && since.bad > haltRatio * since.ended) {
    return halt(
      facts,
      `${since.bad} of ${since.ended} ended letters failed again or have an unknown outcome`,
      now,
    )
  }
  return sendStep(facts, Math.min(counts.pending, sentMax), now)
}

/**
 * Waits until about 100 ms worth of letters can be sent. Otherwise one or two tokens would be available right
 * after each step, and even a slow campaign would run steps all the time.
 */
function sendStep(facts: CampaignFacts, countMax: number, now: Instant): Step {
  const speed = getCurrentSpeed(facts)
  const pace = fillPace(facts.pace, speed, now)
  // The clock was set back. Store the new time, so that the bucket fills from now on.
  if (speed.ratePerSecond > 0 && pace.at < facts.pace.at)
    return { kind: 'update', facts: { ...facts, pace, updatedAt: now } }
  const tokens = Math.floor(pace.tokens)
  const worth = Math.max(Math.floor((computeRate(speed, now - pace.since) * stepUs) / usPerSecond), 1)
  const count = Math.min(countMax, tokens)
  return count < Math.min(countMax, worth) ? wait : { kind: 'send', countMax: count }
}
const stepUs = 100_000

/** The canary is sent at the full rate; the ramp starts after it. */
function getCurrentSpeed({ spec, state }: CampaignFacts): Pick<CampaignSpec, 'ratePerSecond' | 'rampUs'> {
  return state === 'canary' ? { ratePerSecond: spec.ratePerSecond, rampUs: 0 } : spec
}

/** The document after a step sent `count` letters, the last one at `positionDone`. */
export function applySending(
  facts: CampaignFacts,
  sent: Readonly<{ count: number; positionDone: number }>,
  now: Instant,
): CampaignFacts {
  const pace = spendPace(fillPace(facts.pace, getCurrentSpeed(facts), now), sent.count)
  return {
    ...facts,
    positionDone: sent.positionDone,
    pace,
    recent: addSent(facts.recent, sent.count, now),
    updatedAt: now,
  }
}

/** The document after the whole set is frozen. It halts if the set has not the number of letters expected. */
export function applyFreezing(facts: CampaignFacts, size: number, now: Instant): CampaignFacts {
  const { expectedCount } = facts.spec
  const frozen = { ...facts, size, frozenUntil: null, startedAt: now, pace: startPace(now), updatedAt: now }
  if (expectedCount === null || expectedCount === size) return { ...frozen, state: chooseStartState(facts) }
  const stateReason = `the frozen set has ${size} letters; expected_count is ${expectedCount}`
  return { ...frozen, state: 'halted', stateReason }
}

function chooseStartState({ spec }: CampaignFacts): CampaignState {
  return spec.canaryCount > 0 ? 'canary' : 'running'
}

/**
 * Applies a new speed from now on; unused tokens of the old speed are lost. A new ramp starts now. Without a
 * new ramp, the current one continues to the new rate.
 */
export function adjust(facts: CampaignFacts, changes: CampaignChanges, now: Instant): CampaignFacts {
  if (facts.state === 'done' || facts.state === 'cancelled') throw createStateError(facts, 'changed')
  // An unlimited rate has no ramp.
  const rampUs = changes.ratePerSecond === 0 ? 0 : facts.spec.rampUs
  const spec = { ...facts.spec, rampUs, ...changes }
  checkRamp(spec)
  const names = Object.keys(changes) as (keyof CampaignChanges)[]
  if (names.every((name) => spec[name] === facts.spec[name])) return facts
  return { ...facts, spec, pace: adjustPace(facts.pace, changes, now), updatedAt: now }
}

function adjustPace(pace: Pace, { ratePerSecond, rampUs }: CampaignChanges, now: Instant): Pace {
  if (rampUs !== undefined) return startPace(now)
  return ratePerSecond === undefined ? pace : { ...pace, at: now, tokens: 0 }
}

export function pause(facts: CampaignFacts, reason: string, now: Instant): CampaignFacts {
  if (facts.state === 'paused') return facts
  if (!isActive(facts.state)) throw createStateError(facts, 'paused')
  return { ...facts, state: 'paused', stateReason: reason, updatedAt: now }
}

export function resume(facts: CampaignFacts, counts: CampaignCounts, now: Instant): CampaignFacts {
  if (isActive(facts.state)) return facts
  if (facts.state !== 'paused' && facts.state !== 'halted') throw createStateError(facts, 'resumed')
  // A person who resumes has checked the canary, so continue in full. Continue freezing if the set is
  // incomplete, and start with the canary if nothing was sent yet.
  const state =
    facts.size === null ? 'freezing' : facts.positionDone === null ? chooseStartState(facts) : 'running'
  const overlooked = countOutcomes(counts)
  return { ...facts, state, stateReason: '', pace: startPace(now), overlooked, updatedAt: now }
}

export function cancel(facts: CampaignFacts, reason: string, now: Instant): CampaignFacts {
  if (facts.state === 'cancelled') return facts
  if (facts.state === 'done') throw createStateError(facts, 'cancelled')
  return { ...facts, state: 'cancelled', stateReason: reason, updatedAt: now }
}

export function isActive(state: CampaignState): boolean {
  return state === 'freezing' || state === 'canary' || state === 'running'
}

/** The state as the store indexes it. A cancelled campaign stays active until its set has ended. */
export function toStoredState(facts: CampaignFacts): string {
  return facts.state === 'cancelled' && facts.endedAt === null ? 'cancelling' : facts.state
}
export const activeStoredStates = ['freezing', 'canary', 'running', 'cancelling'] as const

const recentSeconds = 10

/** Letters sent per second, over the last ten seconds or since the start. */
export function measureRate(facts: Pick<CampaignFacts, 'recent' | 'startedAt'>, now: Instant): number {
  const second = Math.floor(now / usPerSecond)
  const recent = facts.recent.filter(([at]) => isRecent(at, second))
  const sum = recent.reduce((total, [, count]) => total + count, 0)
  const startedAt = facts.startedAt ?? now
  // A start in the future: the clock was set back since.
  const since = startedAt <= now ? startedAt : ((recent[0]?.[0] ?? second) - 1) * usPerSecond
  const elapsed = (now - since) / usPerSecond
  return Math.round((sum / Math.min(Math.max(elapsed, 1), recentSeconds)) * 10) / 10
}

/** After the clock was set back, seconds in the future are not recent. */
function isRecent(at: number, second: number): boolean {
  return at > second - recentSeconds && at <= second
}

function addSent(recent: CampaignFacts['recent'], count: number, now: Instant): CampaignFacts['recent'] {
  const second = Math.floor(now / usPerSecond)
  const kept = recent.filter(([at]) => isRecent(at, second))
  const last = kept.at(-1)
  if (last?.[0] === second) return [...kept.slice(0, -1), [second, last[1] + count]]
  return [...kept, [second, count]]
}

function toEnded(
  { size }: CampaignFacts,
  counts: CampaignCounts,
  now: Instant,
): Pick<CampaignFacts, 'endedAt' | 'updatedAt' | 'size'> {
  return { endedAt: now, updatedAt: now, size: size ?? countAll(counts) }
}

function halt(facts: CampaignFacts, what: string, now: Instant): Step {
  const bound = `more than ${Math.round(facts.spec.haltRatio * 1_000) / 10} %`
  return {
    kind: 'update',
    facts: { ...facts, state: 'halted', stateReason: `${what}: ${bound}`, updatedAt: now },
  }
}

function createStateError({ state }: CampaignFacts, wished: string): KnownError {
  return new KnownError('CAMPAIGN_STATE', `the campaign is ${state}; it cannot be ${wished}`)
}

function countOutcomes({ resolved, failed, unknown }: CampaignCounts): OutcomeCounts {
  return { ended: resolved + failed + unknown, bad: failed + unknown }
}

function countStarted({ sent, resolved, failed, unknown }: CampaignCounts): number {
  return sent + resolved + failed + unknown
}

export function countAll(counts: CampaignCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
