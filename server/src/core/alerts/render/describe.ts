/**
 * The words of a notification, which all channels for people share: what happened, where, how often, since
 * when, an example, and where to look. Each renderer only adds the markup of its service.
 */
import { type Instant, toDate, usPerSecond } from '../../time/instant.ts'
import type { AlertSeverity, AlertText, Notification } from '../notification.ts'
import { shorten, toLine, toLines } from './plain.ts'

export type Description = Readonly<{
  /** One line, such as `CRITICAL: new group in orders-dead`. */
  title: string
  color: AlertColor
  alerts: readonly DescribedAlert[]
  /** For example `3 more alerts are not shown.` */
  more: string | null
  url: string | null
}>

export type DescribedAlert = Readonly<{
  summary: string
  /** For example `['Queue', 'orders-dead']`. */
  facts: readonly (readonly [label: string, value: string])[]
  sample: string | null
  url: string | null
}>

export type AlertColor = 'red' | 'orange' | 'blue' | 'green'

/** How much of a notification is shown. */
export type Detail = Readonly<{ alertsMax: number; sampleMax: number; textMax: number }>

/** From much to little. */
const details: readonly Detail[] = [
  { alertsMax: 20, sampleMax: 1_500, textMax: 400 },
  { alertsMax: 20, sampleMax: 400, textMax: 300 },
  { alertsMax: 10, sampleMax: 400, textMax: 300 },
  { alertsMax: 10, sampleMax: 120, textMax: 150 },
  { alertsMax: 5, sampleMax: 120, textMax: 120 },
  { alertsMax: 1, sampleMax: 100, textMax: 100 },
  { alertsMax: 1, sampleMax: 0, textMax: 60 },
]

/** The message with the most detail that `isWithin` accepts, and otherwise the shortest one. */
export function renderWithin<T>(
  notification: Notification,
  render: (description: Description) => T,
  isWithin: (message: T) => boolean,
): T {
  let message = render(describe(notification, details[0] as Detail))
  for (const detail of details.slice(1)) {
    if (isWithin(message)) return message
    message = render(describe(notification, detail))
  }
  return message
}

export function describe(notification: Notification, detail: Detail): Description {
  const { alerts, moreAlerts, url } = notification
  const shown = alerts.slice(0, detail.alertsMax)
  const hidden = alerts.length - shown.length + moreAlerts
  return {
    title: shorten(toTitle(notification), Math.min(titleMax, 2 * detail.textMax)),
    color: notification.kind === 'resolved' ? 'green' : colors[notification.severity],
    alerts: shown.map((alert) => describeAlert(alert, notification, detail)),
    more: hidden === 0 ? null : `${hidden} more ${hidden === 1 ? 'alert is' : 'alerts are'} not shown.`,
    url: toUrl(url),
  }
}

const colors = { critical: 'red', warning: 'orange', info: 'blue' } as const

export const titleMax = 250

/** One line. */
export function toTitle({ kind, severity, rule, alerts, moreAlerts }: Notification): string {
  const count = alerts.length + moreAlerts
  const summary = alerts[0]?.summary ?? `rule ${rule}`
  const many = count > 1 ? `${count} alerts of rule ${toLine(rule, 80)}, such as: ` : ''
  return toLine(`${toLabel(kind, severity)}: ${many}${toLine(summary, titleMax)}`, titleMax)
}

function toLabel(kind: Notification['kind'], severity: AlertSeverity): string {
  switch (kind) {
    case 'firing':
      return severity.toUpperCase()
    case 'repeated':
      return `STILL ${severity.toUpperCase()}`
    case 'resolved':
      return 'RESOLVED'
    case 'test':
      return 'TEST'
  }
}

function describeAlert(alert: AlertText, { rule, at }: Notification, detail: Detail): DescribedAlert {
  const { textMax, sampleMax } = detail
  const { queue, group, subject, count, startedAt, endedAt, sampleError } = alert
  const line = (text: string): string => toLine(text, textMax)
  const isNamed = subject === queue || subject === group
  const end = endedAt ?? at
  const sample = sampleError === null ? '' : toLines(sampleError, sampleMax)
  const facts: readonly (readonly [string, string | null])[] = [
    ['Severity', alert.severity],
    ['Rule', line(rule)],
    ['Subject', isNamed ? null : line(subject)],
    ['Queue', queue && line(queue)],
    ['Group', group && line(group)],
    ['Count', count === null ? null : String(count)],
    ['Since', `${formatTime(startedAt)} (${formatDuration(end - startedAt)})`],
    ['Until', endedAt === null ? null : formatTime(endedAt)],
  ]
  return {
    summary: line(alert.summary),
    facts: facts.flatMap(([label, value]) =>
      value === null || value === '' ? [] : [[label, value] as const],
    ),
    sample: sample === '' ? null : sample,
    url: toUrl(alert.url),
  }
}

const urlMax = 500

/** A URL with all characters that could end it in a message encoded; null for anything else. */
export function toUrl(text: string | null): string | null {
  const url = text === null ? null : URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null
  const rest = `${url.pathname}${url.search}${url.hash}`
  const href = url.origin + rest.replaceAll(/[<>"'|()[\]\\`*~\s]/g, encodeCharacter)
  return href.length > urlMax ? null : href
}

function encodeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

/** For example `2026-11-19 03:42:10 UTC`. */
export function formatTime(at: Instant): string {
  return `${toDate(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** Two units at most, such as `2 h 5 min`. */
export function formatDuration(durationUs: number): string {
  const seconds = Math.max(0, Math.round(durationUs / usPerSecond))
  const units: readonly (readonly [string, number])[] = [
    ['d', 86_400],
    ['h', 3_600],
    ['min', 60],
    ['s', 1],
  ]
  const first = units.findIndex(([, size]) => seconds >= size)
  if (first < 0) return '0 s'
  let rest = seconds
  return units
    .slice(first, first + 2)
    .flatMap(([unit, size]) => {
      const count = Math.floor(rest / size)
      rest -= count * size
      return count === 0 ? [] : `${count} ${unit}`
    })
    .join(' ')
}
