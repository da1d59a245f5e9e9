/** The body of signed webhooks, for programs: `type`, `timestamp` and `data`, as in Standard Webhooks. */

import { cutText } from '../../text/storable-text.ts'
import { toDate } from '../../time/instant.ts'
import type { Notification } from '../notification.ts'

const bounds = { textMax: 1_000, sampleMax: 8_000 } as const

export type WebhookBody = Readonly<{
  type: `alert.${Notification['kind']}`
  timestamp: string
  data: Readonly<Record<string, unknown>>
}>

export function renderWebhook(notification: Notification): WebhookBody {
  const { id, kind, severity, namespace, rule, at, url, alerts, moreAlerts } = notification
  return {
    type: `alert.${kind}`,
    timestamp: toDate(at).toISOString(),
    data: {
      id,
      severity,
      namespace,
      rule: cut(rule),
      url,
      alerts: alerts.map((alert) => ({
        id: alert.id,
        dedup_key: cut(alert.dedupKey),
        subject: cut(alert.subject),
        severity: alert.severity,
        summary: cut(alert.summary),
        queue: cut(alert.queue),
        group: cut(alert.group),
        count: alert.count,
        sample_error: cut(alert.sampleError, bounds.sampleMax),
        started_at: toDate(alert.startedAt).toISOString(),
        ended_at: alert.endedAt === null ? null : toDate(alert.endedAt).toISOString(),
        url: alert.url,
      })),
      more_alerts: moreAlerts,
    },
  }
}

function cut<T extends string | null>(text: T, lengthMax: number = bounds.textMax): T | string {
  return text === null ? text : cutText(text, lengthMax).toWellFormed()
}
