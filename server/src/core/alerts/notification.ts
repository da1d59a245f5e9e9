/**
 * A message about alerts to one or more channels. The evaluation of rules creates it, the system queue of
 * notifications keeps it until it is sent, and `render/` writes it in the format of each channel.
 */
import type { Instant } from '../time/instant.ts'

/** The worst first. */
export const alertSeverities = ['critical', 'warning', 'info'] as const
export type AlertSeverity = (typeof alertSeverities)[number]

/** `repeated`: the alert still exists after the repeat interval. `test`: a person checks the channel. */
export const notificationKinds = ['firing', 'repeated', 'resolved', 'test'] as const
export type NotificationKind = (typeof notificationKinds)[number]

/** All texts are already redacted. */
export type Notification = Readonly<{
  /** The same for every attempt, so that receivers can recognise a repetition. It has no full stop. */
  id: string
  kind: NotificationKind
  /** The worst of its alerts. */
  severity: AlertSeverity
  namespace: string
  rule: string
  at: Instant
  /** The page of the alerts in the dashboard; null: the server does not know its public URL. */
  url: string | null
  /** At most `alertsPerNotification`. */
  alerts: readonly AlertText[]
  /** Alerts that did not fit. */
  moreAlerts: number
}>

/** One alert in a notification. */
export type AlertText = Readonly<{
  id: string
  /** The queue, group, worker or consumer that the alert is about. */
  subject: string
  severity: AlertSeverity
  /** A sentence for people. */
  summary: string
  queue: string | null
  /** The title of the group of dead letters. */
  group: string | null
  count: number | null
  sampleError: string | null
  startedAt: Instant
  /** Null: the condition still holds. */
  endedAt: Instant | null
  url: string | null
  /** The same from the start to the end of an alert, for services that open and close incidents. */
  dedupKey: string
}>

export const alertsPerNotification = 20
