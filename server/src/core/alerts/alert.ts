/**
 * The states of an alert. An alert is **pending** while its condition is true for less than the hold time of
 * its rule, then it is **firing**, and **resolved** when the condition is false again, or when a person
 * resolves it.
 *
 *     (none) ──▶ pending ──▶ firing ──▶ resolved
 *                   │           ▲           │
 *                   ▼           └───────────┘  true again before the resolution was notified
 *                removed
 *
 * An alert is **tracked** as long as the pass has to look at it: until it is resolved, its resolution was
 * notified, and its condition is false. Pure: the pass gives the time and what it observed.
 */
import type { Instant } from '../time/instant.ts'
import type { AlertSeverity } from './notification.ts'
import type { AlertRule } from './rule.ts'

export type AlertDecision = Readonly<{ at: Instant; by: string; note: string }>

export type Alert = Readonly<{
  /** Grows with time. */
  id: string
  version: number
  namespace: string
  rule: string
  subject: string
  queue: string | null
  groupId: number | null
  severity: AlertSeverity
  state: 'pending' | 'firing' | 'resolved'
  isTracked: boolean
  summary: string
  count: number | null
  /** The title of a group, as stored: it can have content that not everybody may see. */
  groupTitle: string | null
  /** The error of a letter, as stored: it can have content that not everybody may see. */
  sampleError: string | null
  /** When the condition became true. */
  startedAt: Instant
  firedAt: Instant | null
  /** Since when the condition of a firing alert is false. */
  clearSince: Instant | null
  endedAt: Instant | null
  /** When the alert was last part of a notification that it fires. */
  notifiedAt: Instant | null
  /** A notification about the end is still to be sent. */
  isEndDue: boolean
  updatedAt: Instant
  acknowledged: AlertDecision | null
  muted: (AlertDecision & Readonly<{ until: Instant }>) | null
  resolved: AlertDecision | null
}>

/** The condition of a rule is true for a subject. */
export type Observation = Readonly<{
  namespace: string
  subject: string
  queue: string | null
  groupId: number | null
  groupTitle: string | null
  count: number | null
  /** A sentence for people, without content of letters. */
  summary: string
  /** When the condition became true; null: it is not known. */
  since: Instant | null
}>

/** `unknown`: nobody could look, so nothing changes. */
export type Seen = Observation | 'unknown' | null

/** How often the stored figures of an alert are replaced while nothing else changes. */
export const refreshUs = 60_000_000

/** The first state of an alert. */
export function startAlert(id: string, rule: AlertRule, seen: Observation, now: Instant): Alert {
  const startedAt = Math.min(seen.since ?? now, now)
  const isFiring = now - startedAt >= rule.holdUs
  return {
    id,
    version: 0,
    namespace: seen.namespace,
    rule: rule.name,
    subject: seen.subject,
    queue: seen.queue,
    groupId: seen.groupId,
    severity: rule.severity,
    state: isFiring ? 'firing' : 'pending',
    isTracked: true,
    summary: seen.summary,
    count: seen.count,
    groupTitle: seen.groupTitle,
    sampleError: null,
    startedAt,
    firedAt: isFiring ? now : null,
    clearSince: null,
    endedAt: null,
    notifiedAt: null,
    isEndDue: false,
    updatedAt: now,
    acknowledged: null,
    muted: null,
    resolved: null,
  }
}

/**
 * The next state of a tracked alert; the same object if nothing changes, and null if it is removed because it
 * never fired.
 */
export function advanceAlert(alert: Alert, rule: AlertRule, seen: Seen, now: Instant): Alert | null {
  if (seen === 'unknown') return alert
  switch (alert.state) {
    case 'pending':
      return advancePending(alert, rule, seen, now)
    case 'firing':
      return seen === null ? clearFiring(alert, rule, now) : refresh(alert, rule, seen, now)
    case 'resolved':
      return advanceResolved(alert, rule, seen, now)
  }
}

function advancePending(alert: Alert, rule: AlertRule, seen: Observation | null, now: Instant): Alert | null {
  if (seen === null) return null
  if (now - alert.startedAt < rule.holdUs) return alert
  return { ...show(alert, rule, seen, now), state: 'firing', firedAt: now }
}

function clearFiring(alert: Alert, rule: AlertRule, now: Instant): Alert {
  const clearSince = alert.clearSince ?? now
  if (now - clearSince >= rule.clearAfterUs) return endAlert(alert, now)
  return alert.clearSince === null ? { ...alert, clearSince, updatedAt: now } : alert
}

function advanceResolved(alert: Alert, rule: AlertRule, seen: Observation | null, now: Instant): Alert {
  const isOver = seen === null && !alert.isEndDue
  if (isOver) return { ...alert, isTracked: false, updatedAt: now }
  const isTrueAgain = seen !== null && alert.resolved === null
  if (!isTrueAgain) return alert
  return { ...show(alert, rule, seen, now), state: 'firing', endedAt: null, isEndDue: false }
}

/** An alert ends. Its end is notified if its start was, unless it is muted. */
export function endAlert(alert: Alert, now: Instant): Alert {
  const isEndDue = alert.notifiedAt !== null
  return {
    ...alert,
    state: 'resolved',
    isTracked: isEndDue,
    endedAt: now,
    clearSince: null,
    isEndDue,
    updatedAt: now,
  }
}

function refresh(alert: Alert, rule: AlertRule, seen: Observation, now: Instant): Alert {
  const isSame = alert.count === seen.count && alert.summary === seen.summary
  const isEarly = now - alert.updatedAt < refreshUs
  const isShown = alert.clearSince === null && alert.severity === rule.severity
  return isShown && (isSame || isEarly) ? alert : show(alert, rule, seen, now)
}

/** The alert with what is observed now. */
function show(alert: Alert, rule: AlertRule, seen: Observation, now: Instant): Alert {
  const { count, summary, groupTitle } = seen
  return { ...alert, count, summary, groupTitle, severity: rule.severity, clearSince: null, updatedAt: now }
}

export function acknowledgeAlert(alert: Alert, decision: AlertDecision): Alert {
  return { ...alert, acknowledged: decision, updatedAt: decision.at }
}

export function muteAlert(alert: Alert, decision: AlertDecision, until: Instant): Alert {
  return { ...alert, muted: { ...decision, until }, updatedAt: decision.at }
}

/** The alert stays tracked until its condition is false, so that it does not fire again at once. */
export function resolveAlert(alert: Alert, decision: AlertDecision): Alert {
  return { ...endAlert(alert, decision.at), resolved: decision, isTracked: true }
}

export function isMuted({ muted }: Alert, now: Instant): boolean {
  return muted !== null && muted.until > now
}
