/**
 * Events of PagerDuty (Events API v2), one for each alert: `trigger` opens or updates an incident, `resolve`
 * ends it. The key of an alert is at most 255 characters, the summary 1,024, and an event 512 KB.
 */
import { toDate } from '../../time/instant.ts'
import type { AlertSeverity, AlertText, Notification } from '../notification.ts'
import { formatTime, toUrl } from './describe.ts'
import { toLine, toLines } from './plain.ts'

const bounds = { keyMax: 255, summaryMax: 1_024, textMax: 1_000, sampleMax: 8_000 } as const

const severities: Readonly<Record<AlertSeverity, string>> = {
  critical: 'critical',
  warning: 'warning',
  info: 'info',
}

export type PagerDutyEvent = Readonly<Record<string, unknown>>

export function renderPagerDuty(notification: Notification, routingKey: string): readonly PagerDutyEvent[] {
  return notification.alerts.map((alert) => {
    const event = { routing_key: routingKey, dedup_key: toLine(alert.dedupKey, bounds.keyMax) }
    if (alert.endedAt !== null || notification.kind === 'resolved') {
      return { ...event, event_action: 'resolve' }
    }
    const url = toUrl(alert.url) ?? toUrl(notification.url)
    return {
      ...event,
      event_action: 'trigger',
      payload: toPayload(alert, notification),
      client: 'Redrive',
      ...(url !== null && { client_url: url, links: [{ href: url, text: 'Open in Redrive' }] }),
    }
  })
}

function toPayload(alert: AlertText, { rule, kind, namespace, moreAlerts }: Notification) {
  const { queue, group, count, sampleError, subject, startedAt } = alert
  const line = (text: string): string => toLine(text, bounds.textMax)
  const summary = toLine(alert.summary, bounds.summaryMax - 10)
  return {
    summary: kind === 'test' ? `TEST: ${summary}` : summary,
    source: line(queue ?? subject) || 'redrive',
    severity: severities[alert.severity],
    timestamp: toDate(startedAt).toISOString(),
    component: 'redrive',
    class: line(rule),
    ...(group !== null && { group: line(group) }),
    custom_details: {
      subject: line(subject),
      namespace: line(namespace),
      ...(queue !== null && { queue: line(queue) }),
      ...(group !== null && { group: line(group) }),
      ...(count !== null && { count }),
      since: formatTime(startedAt),
      ...(sampleError !== null && { sample_error: toLines(sampleError, bounds.sampleMax) }),
      ...(moreAlerts > 0 && { more_alerts: moreAlerts }),
    },
  }
}
