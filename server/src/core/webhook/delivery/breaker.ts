/**
 * The circuit breaker of a consumer, as pure functions.
 *
 *                  too many failures                  a job may be tried
 *     closed ─────────────────────────▶ open ─────────────────────────────▶ half-open
 *       ▲                                ▲                                      │  │
 *       │                                └──────────── the probe fails ─────────┘  │
 *       └──────────────────────────────────────── the probe is delivered ──────────┘
 *
 * An open breaker holds the jobs of the consumer: they wait, and no attempt is used. The server that makes a
 * breaker half-open pushes one job as a probe. All servers on a store share the state; the counts of a closed
 * breaker belong to each server.
 */
import { addDuration, type Instant } from '../../time/instant.ts'

export type BreakerRules = Readonly<{
  /** Failures in a row that open the breaker. 0: the breaker never opens. */
  failuresMax: number
  /** The share of failures in a window that opens the breaker, if the window has `requestsMin` attempts. */
  failureRatioMax: number
  requestsMin: number
  windowUs: number
  /** How long the breaker holds the jobs first. Each failed probe doubles the time. */
  holdUs: number
  holdUsMax: number
  /** How long a probe may take. A server that was killed during its probe must not hold the jobs for ever. */
  probeUs: number
}>

/** The state that is stored. */
export type BreakerState =
  | Readonly<{ state: 'closed' }>
  | Readonly<{ state: 'open'; openedAt: Instant; holdUntil: Instant; failedProbes: number; reason: string }>
  | Readonly<{
      state: 'half-open'
      openedAt: Instant
      probeUntil: Instant
      failedProbes: number
      reason: string
    }>

/** The counts of one server while the breaker is closed. */
export type BreakerCounts = Readonly<{
  failuresInRow: number
  windowStartedAt: Instant
  delivered: number
  failed: number
}>

export const closedBreaker: BreakerState = { state: 'closed' }

export function newBreakerCounts(now: Instant): BreakerCounts {
  return { failuresInRow: 0, windowStartedAt: now, delivered: 0, failed: 0 }
}

export function countAttempt(
  counts: BreakerCounts,
  isDelivered: boolean,
  rules: BreakerRules,
  now: Instant,
): BreakerCounts {
  const isNewWindow = now >= counts.windowStartedAt + rules.windowUs || now < counts.windowStartedAt
  const window = isNewWindow ? { windowStartedAt: now, delivered: 0, failed: 0 } : counts
  return {
    windowStartedAt: window.windowStartedAt,
    failuresInRow: isDelivered ? 0 : counts.failuresInRow + 1,
    delivered: window.delivered + (isDelivered ? 1 : 0),
    failed: window.failed + (isDelivered ? 0 : 1),
  }
}

/** Why a closed breaker opens now; undefined: it stays closed. */
export function findReasonToOpen(counts: BreakerCounts, rules: BreakerRules): string | undefined {
  if (rules.failuresMax === 0) return undefined
  const { failuresInRow, delivered, failed } = counts
  if (failuresInRow >= rules.failuresMax) return `${failuresInRow} attempts in a row failed`
  const attempts = delivered + failed
  if (attempts < rules.requestsMin || failed < attempts * rules.failureRatioMax) return undefined
  return `${failed} of the last ${attempts} attempts failed`
}

export function openBreaker(
  state: BreakerState,
  reason: string,
  rules: BreakerRules,
  now: Instant,
): BreakerState {
  if (state.state !== 'closed') return state
  return { state: 'open', openedAt: now, holdUntil: addDuration(now, rules.holdUs), failedProbes: 0, reason }
}

/** When a probe may start; null: jobs need no probe. */
export function probeAt(state: BreakerState): Instant | null {
  switch (state.state) {
    case 'closed':
      return null
    case 'open':
      return state.holdUntil
    case 'half-open':
      return state.probeUntil
  }
}

/** The caller of a successful start pushes one job. Undefined: another server probes, or it is too early. */
export function startProbe(state: BreakerState, rules: BreakerRules, now: Instant): BreakerState | undefined {
  if (state.state === 'closed') return undefined
  const at = probeAt(state)
  if (at === null || now < at) return undefined
  const { openedAt, failedProbes, reason } = state
  return { state: 'half-open', openedAt, probeUntil: addDuration(now, rules.probeUs), failedProbes, reason }
}

export function endProbe(
  state: BreakerState,
  isDelivered: boolean,
  rules: BreakerRules,
  now: Instant,
): BreakerState {
  if (state.state !== 'half-open') return state
  if (isDelivered) return closedBreaker
  const failedProbes = state.failedProbes + 1
  const { openedAt, reason } = state
  return {
    state: 'open',
    openedAt,
    holdUntil: addDuration(now, holdUsAfter(failedProbes, rules)),
    failedProbes,
    reason,
  }
}

/** The probe found no job, or this server stops: another probe may start at once. */
export function cancelProbe(state: BreakerState, now: Instant): BreakerState {
  if (state.state !== 'half-open') return state
  const { openedAt, failedProbes, reason } = state
  return { state: 'open', openedAt, holdUntil: now, failedProbes, reason }
}

function holdUsAfter(failedProbes: number, { holdUs, holdUsMax }: BreakerRules): number {
  // Bound the exponent: after months of failed probes the power would be infinite.
  return Math.min(holdUs * 2 ** Math.min(failedProbes, 30), holdUsMax)
}
