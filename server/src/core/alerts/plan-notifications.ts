/** Which alerts of a rule are notified now, and how they are grouped. */
import type { Instant } from '../time/instant.ts'
import { type Alert, isMuted } from './alert.ts'
import type { NotificationKind } from './notification.ts'
import type { AlertRule } from './rule.ts'

/** Alerts of one rule in one namespace that are one notification. */
export type NotificationPlan = Readonly<{
  kind: Exclude<NotificationKind, 'test'>
  rule: AlertRule
  namespace: string
  alerts: readonly Alert[]
}>

/**
 * The alerts of one rule in one namespace. The first alert that waited for the group wait takes all others
 * with it that were not notified yet.
 */
export function planNotifications(
  rule: AlertRule,
  namespace: string,
  alerts: readonly Alert[],
  now: Instant,
): readonly NotificationPlan[] {
  const heard = alerts.filter((alert) => !isMuted(alert, now))
  const starting = heard.filter((alert) => alert.notifiedAt === null && isUnanswered(alert))
  const repeated = heard.filter((alert) => isRepeatDue(alert, rule, now))
  const ending = heard.filter(({ isEndDue }) => isEndDue)
  const waited = (at: Instant | null): boolean => at !== null && now - at >= rule.groupWaitUs
  const plans: NotificationPlan[] = []
  const add = (kind: NotificationPlan['kind'], found: readonly Alert[], isDue: boolean): void => {
    if (isDue) plans.push({ kind, rule, namespace, alerts: found })
  }
  add(
    'resolved',
    ending,
    ending.some(({ endedAt }) => waited(endedAt)),
  )
  add(
    'firing',
    starting,
    starting.some(({ firedAt }) => waited(firedAt)),
  )
  add('repeated', repeated, repeated.length > 0)
  return plans
}

/** It fires, and no person acknowledged it. */
function isUnanswered({ state, acknowledged }: Alert): boolean {
  return state === 'firing' && acknowledged === null
}

function isRepeatDue(alert: Alert, { repeatUs }: AlertRule, now: Instant): boolean {
  const { notifiedAt } = alert
  return isUnanswered(alert) && notifiedAt !== null && repeatUs !== null && now - notifiedAt >= repeatUs
}

/** The alert after it became part of a notification. */
export function markNotified(alert: Alert, kind: NotificationPlan['kind'], now: Instant): Alert {
  if (kind !== 'resolved') return { ...alert, notifiedAt: now, updatedAt: now }
  // An alert that a person resolved stays tracked until its condition is false.
  return { ...alert, isEndDue: false, isTracked: alert.resolved !== null, updatedAt: now }
}

/** A mute also silences the end; the end of an alert that stays muted is never notified. */
export function dropMutedEnd(alert: Alert, now: Instant): Alert {
  if (!alert.isEndDue || !isMuted(alert, now)) return alert
  return { ...alert, isEndDue: false, isTracked: alert.resolved !== null, updatedAt: now }
}
