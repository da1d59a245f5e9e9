/** The text of a notification. Everything that comes from letters is redacted by the rules of their queue. */
import type { Alert } from '../../core/alerts/alert.ts'
import {
  type AlertText,
  alertSeverities,
  alertsPerNotification,
  type Notification,
} from '../../core/alerts/notification.ts'
import type { NotificationPlan } from '../../core/alerts/plan-notifications.ts'
import type { Queue } from '../../core/items/queue.ts'
import { redactedText } from '../../core/redaction/redaction.ts'
import { redactText } from '../../core/redaction/redaction-rules.ts'
import type { Instant } from '../../core/time/instant.ts'

export type NotificationTexts = Readonly<{
  id: string
  now: Instant
  /** The address of the dashboard; null: it is not known. */
  publicUrl: string | null
  /** The queues of the alerts that exist. */
  queues: ReadonlyMap<string, Queue>
}>

export function toNotification(plan: NotificationPlan, texts: NotificationTexts): Notification {
  const { kind, rule, namespace } = plan
  // The worst and oldest first, because only some of them fit.
  const alerts = plan.alerts.toSorted(
    (a, b) => rank(a.severity) - rank(b.severity) || a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1),
  )
  const shown = alerts.slice(0, alertsPerNotification)
  return {
    id: texts.id,
    kind,
    severity: alerts[0]?.severity ?? rule.severity,
    namespace,
    rule: rule.name,
    at: texts.now,
    url: texts.publicUrl,
    alerts: shown.map((alert) => toText(alert, texts)),
    moreAlerts: alerts.length - shown.length,
  }
}

function rank(severity: Alert['severity']): number {
  return alertSeverities.indexOf(severity)
}

function toText(alert: Alert, { publicUrl, queues }: NotificationTexts): AlertText {
  const { id, subject, severity, summary, queue, count, startedAt, endedAt } = alert
  const redact = (text: string | null): string | null => {
    if (text === null || queue === null) return text
    const found = queues.get(queue)
    // The rules of a queue that was deleted are not known.
    return found === undefined ? redactedText : redactText(found.redaction, text)
  }
  return {
    id,
    subject,
    severity,
    summary,
    queue,
    group: redact(alert.groupTitle),
    count,
    sampleError: redact(alert.sampleError),
    startedAt,
    endedAt,
    url: publicUrl,
    dedupKey: id,
  }
}
