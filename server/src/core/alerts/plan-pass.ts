/** One evaluation of all rules: from rules, facts and alerts to changed alerts and notifications. */
import type { Instant } from '../time/instant.ts'
import { type Alert, advanceAlert, startAlert } from './alert.ts'
import type { AlertFacts } from './facts.ts'
import { limitObservations } from './limit-observations.ts'
import { observe, seeAbsent } from './observe.ts'
import { dropMutedEnd, markNotified, type NotificationPlan, planNotifications } from './plan-notifications.ts'
import type { AlertRule } from './rule.ts'

export type PassPlan = Readonly<{
  /** New and changed alerts. */
  changed: readonly Alert[]
  /** Alerts that never fired. */
  removed: readonly Alert[]
  notifications: readonly NotificationPlan[]
}>

/** Notifications beyond this number wait for the next pass. */
export const notificationsPerPass = 100

export function planPass(
  rules: readonly AlertRule[],
  facts: AlertFacts,
  tracked: readonly Alert[],
  createId: () => string,
): PassPlan {
  const byRule = Map.groupBy(tracked, ({ rule }) => rule)
  const current = new Map<string, Alert>()
  const removed: Alert[] = []
  for (const rule of rules) {
    const next = advanceRule(rule, facts, byRule.get(rule.name) ?? [], createId)
    for (const alert of next.alerts) current.set(alert.id, alert)
    removed.push(...next.removed)
  }
  const named = new Map(rules.map((rule) => [rule.name, rule]))
  for (const alert of tracked.filter(({ rule }) => !named.has(rule))) {
    if (alert.state === 'pending') removed.push(alert)
    else current.set(alert.id, endWithRule(alert, facts.now))
  }
  const notifications = notify(named, current, facts.now)
  const before = new Set(tracked)
  return { changed: [...current.values()].filter((alert) => !before.has(alert)), removed, notifications }
}

function advanceRule(
  given: AlertRule,
  facts: AlertFacts,
  tracked: readonly Alert[],
  createId: () => string,
): Readonly<{ alerts: readonly Alert[]; removed: readonly Alert[] }> {
  // The alerts of a rule that was disabled end now.
  const rule = given.isEnabled ? given : { ...given, clearAfterUs: 0 }
  const observations = given.isEnabled ? limitObservations(rule, observe(rule, facts, tracked), tracked) : []
  const unseen = new Map(observations.map((each) => [`${each.namespace}\n${each.subject}`, each]))
  const alerts: Alert[] = []
  const removed: Alert[] = []
  for (const alert of tracked) {
    const key = `${alert.namespace}\n${alert.subject}`
    const seen = unseen.get(key) ?? (given.isEnabled ? seeAbsent(rule, facts, alert) : null)
    unseen.delete(key)
    const next = advanceAlert(alert, rule, seen, facts.now)
    if (next === null) removed.push(alert)
    else alerts.push(dropMutedEnd(next, facts.now))
  }
  for (const seen of unseen.values()) alerts.push(startAlert(createId(), rule, seen, facts.now))
  return { alerts, removed }
}

/** The rule was deleted, and its channels are no longer known. */
function endWithRule(alert: Alert, now: Instant): Alert {
  const endedAt = alert.endedAt ?? now
  return { ...alert, state: 'resolved', isTracked: false, isEndDue: false, endedAt, updatedAt: now }
}

/** Plans notifications, and marks their alerts in `current`. */
function notify(
  rules: ReadonlyMap<string, AlertRule>,
  current: Map<string, Alert>,
  now: Instant,
): readonly NotificationPlan[] {
  const grouped = Map.groupBy(current.values(), ({ rule, namespace }) => `${namespace}\n${rule}`)
  const plans: NotificationPlan[] = []
  for (const alerts of grouped.values()) {
    const [first] = alerts
    const rule = first && rules.get(first.rule)
    if (first === undefined || rule === undefined) continue
    for (const plan of planNotifications(rule, first.namespace, alerts, now)) {
      if (plans.length === notificationsPerPass) return plans
      const marked = plan.alerts.map((alert) => markNotified(alert, plan.kind, now))
      for (const alert of marked) current.set(alert.id, alert)
      plans.push({ ...plan, alerts: marked })
    }
  }
  return plans
}
