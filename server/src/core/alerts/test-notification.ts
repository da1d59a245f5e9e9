/** The message that a person sends to check a channel. */
import type { Instant } from '../time/instant.ts'
import type { ChannelConfig } from './channel.ts'
import type { Notification } from './notification.ts'

/** Services with incidents also get the end of it, so that no test incident stays open. */
export function createTestNotifications(
  { name, namespace, target }: ChannelConfig,
  now: Instant,
): readonly Notification[] {
  const id = `test-${name.replaceAll('.', '-')}-${now}`
  const alert = {
    id,
    subject: name,
    severity: 'info',
    summary: `This is a test of the channel ${name}. Nothing is wrong.`,
    queue: null,
    group: null,
    count: null,
    sampleError: null,
    startedAt: now,
    endedAt: null,
    url: null,
    dedupKey: `redrive-${id}`,
  } as const
  const notification: Notification = {
    id,
    kind: 'test',
    severity: 'info',
    namespace,
    rule: 'test',
    at: now,
    url: null,
    alerts: [alert],
    moreAlerts: 0,
  }
  const hasIncidents = target.kind === 'pagerduty' || target.kind === 'opsgenie'
  const end = { ...notification, alerts: [{ ...alert, endedAt: now }] }
  return hasIncidents ? [notification, end] : [notification]
}
