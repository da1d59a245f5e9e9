/**
 * Requests to the alert API of Opsgenie, and of services that accept the same requests, one for each alert:
 * an alert is created and closed by its alias. At most 130 characters of message, 15,000 of description, 512
 * of alias and entity, and 8,000 of all details.
 */
import type { AlertSeverity, AlertText, Notification } from '../notification.ts'
import { formatTime, toUrl } from './describe.ts'
import { toLine, toLines } from './plain.ts'

const bounds = { messageMax: 130, aliasMax: 512, entityMax: 512, detailMax: 900, sampleMax: 10_000 } as const
const tagMax = 50

const priorities: Readonly<Record<AlertSeverity, string>> = { critical: 'P1', warning: 'P3', info: 'P5' }

/** `path`: what follows the URL of the channel. */
export type OpsgenieRequest = Readonly<{ path: string; body: Readonly<Record<string, unknown>> }>

export function renderOpsgenie(notification: Notification): readonly OpsgenieRequest[] {
  return notification.alerts.map((alert) => {
    const alias = toLine(alert.dedupKey, bounds.aliasMax)
    if (alert.endedAt !== null || notification.kind === 'resolved') {
      const path = `/${encodeURIComponent(alias)}/close?identifierType=alias`
      return { path, body: { source: 'redrive', note: `The condition ended: ${toLine(alert.summary, 500)}` } }
    }
    return { path: '', body: toCreation(alert, notification, alias) }
  })
}

function toCreation(alert: AlertText, { rule, kind, url, namespace }: Notification, alias: string) {
  const { queue, group, count, sampleError, subject, startedAt, severity } = alert
  const detail = (text: string): string => toLine(text, bounds.detailMax)
  const link = toUrl(alert.url) ?? toUrl(url)
  const lines = [
    toLine(alert.summary, 1_000),
    `Since: ${formatTime(startedAt)}`,
    ...(link === null ? [] : [`Open in Redrive: ${link}`]),
    ...(sampleError === null ? [] : ['', 'Sample error:', toLines(sampleError, bounds.sampleMax)]),
  ]
  return {
    message: toLine(kind === 'test' ? `TEST: ${alert.summary}` : alert.summary, bounds.messageMax),
    alias,
    description: lines.join('\n'),
    entity: toLine(queue ?? subject, bounds.entityMax),
    source: 'redrive',
    priority: priorities[severity],
    tags: ['redrive', toLine(rule, tagMax)],
    details: {
      rule: detail(rule),
      namespace: detail(namespace),
      subject: detail(subject),
      ...(queue !== null && { queue: detail(queue) }),
      ...(group !== null && { group: detail(group) }),
      ...(count !== null && { count: String(count) }),
      ...(link !== null && { url: link }),
    },
  }
}
