/** Notifications for tests. */
import type { AlertText, Notification } from '../../src/core/alerts/notification.ts'
import { minute, noon } from '../make.ts'

export function anAlert(over: Partial<AlertText> = {}): AlertText {
  return {
    id: 'a1',
    subject: 'orders-dead',
    severity: 'critical',
    summary: 'A new group of dead letters in orders-dead',
    queue: 'orders-dead',
    group: 'PaymentRefused: card * expired',
    count: 42,
    sampleError: 'PaymentRefused: card 7 expired\n  at pay (pay.ts:12)',
    startedAt: noon - 5 * minute,
    endedAt: null,
    url: 'https://redrive.example.com/groups/7?tab=letters&x=1',
    dedupKey: 'new-group/7',
    ...over,
  }
}

export function aNotification(over: Partial<Notification> = {}): Notification {
  return {
    id: 'n1',
    kind: 'firing',
    severity: 'critical',
    namespace: '_system',
    rule: 'new-group',
    at: noon,
    url: 'https://redrive.example.com/alerts',
    alerts: [anAlert()],
    moreAlerts: 0,
    ...over,
  }
}

export const ended = (over: Partial<Notification> = {}): Notification =>
  aNotification({ id: 'n2', kind: 'resolved', alerts: [anAlert({ endedAt: noon })], ...over })
