/** Notifications as JSON, in the payload of the items that wait to be sent. */
import { cutText } from '../text/storable-text.ts'
import {
  alertSeverities,
  alertsPerNotification,
  type Notification,
  notificationKinds,
} from './notification.ts'

/** `only`: the recipients of an e-mail that were refused for the time being; absent: all of the channel. */
export type QueuedMessage = Readonly<{
  notification: Notification
  channel: string
  only?: readonly string[]
  /** When the notification was queued first; absent: when the item was created. */
  queuedAt?: number
}>

const textMax = 2_000
const sampleMax = 16_000

/** Cuts the texts, so that an error text of any length cannot fill the store. */
export function encodeMessage(message: QueuedMessage): Uint8Array {
  const { notification } = message
  const alerts = notification.alerts.slice(0, alertsPerNotification).map((alert) => ({
    ...alert,
    subject: cutText(alert.subject, textMax),
    summary: cutText(alert.summary, textMax),
    group: alert.group && cutText(alert.group, textMax),
    sampleError: alert.sampleError && cutText(alert.sampleError, sampleMax),
  }))
  const moreAlerts = notification.moreAlerts + notification.alerts.length - alerts.length
  const bounded: QueuedMessage = { ...message, notification: { ...notification, alerts, moreAlerts } }
  return new TextEncoder().encode(JSON.stringify(bounded))
}

/** Undefined: the payload is not from `encodeMessage`, for example because a person produced the item. */
export function decodeMessage(payload: Uint8Array): QueuedMessage | undefined {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch {
    return undefined
  }
  return isMessage(value) ? value : undefined
}

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null
const isText = (value: unknown): boolean => typeof value === 'string'
const isTextOrNull = (value: unknown): boolean => value === null || isText(value)
const isNumber = (value: unknown): boolean => Number.isSafeInteger(value)
const isNumberOrNull = (value: unknown): boolean => value === null || isNumber(value)
const isSeverity = (value: unknown): boolean => alertSeverities.some((each) => each === value)

function isMessage(value: unknown): value is QueuedMessage {
  if (!isFields(value)) return false
  const { only, queuedAt, notification, channel } = value
  if (!isText(channel) || !isFields(notification)) return false
  if (only !== undefined && !(Array.isArray(only) && only.every(isText))) return false
  if (queuedAt !== undefined && !isNumber(queuedAt)) return false
  return isNotification(notification)
}

function isNotification(value: Fields): boolean {
  const { id, kind, severity, namespace, rule, at, url, alerts, moreAlerts } = value
  return (
    [id, namespace, rule].every(isText) &&
    notificationKinds.some((each) => each === kind) &&
    isSeverity(severity) &&
    [at, moreAlerts].every(isNumber) &&
    isTextOrNull(url) &&
    Array.isArray(alerts) &&
    alerts.every(isAlert)
  )
}

function isAlert(value: unknown): boolean {
  if (!isFields(value)) return false
  const { id, subject, severity, summary, queue, group, count, sampleError } = value
  const { startedAt, endedAt, url, dedupKey } = value
  return (
    [id, subject, summary, dedupKey].every(isText) &&
    isSeverity(severity) &&
    [queue, group, sampleError, url].every(isTextOrNull) &&
    [count, endedAt].every(isNumberOrNull) &&
    isNumber(startedAt)
  )
}
