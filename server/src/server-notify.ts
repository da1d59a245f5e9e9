/** The channels and notifications of a server, from its settings. */
import { usPerMs } from './core/time/instant.ts'
import { createChannels } from './drivers/notify/channels.ts'
import { createNotifier, type Notifier } from './drivers/notify/create-notifier.ts'
import type { DeliveryReport } from './drivers/notify/queue/lane-runner.ts'
import type { Logger } from './ops/log/log.ts'
import { createNotificationMetrics, type NotificationMetrics } from './ops/metrics/notification-metrics.ts'
import type { ServerClock } from './server-clock.ts'
import type { ServerOptions } from './server-options.ts'
import type { StoreParts } from './server-store.ts'

export type NotifyParts = Readonly<{ notifier: Notifier; notificationMetrics: NotificationMetrics }>

export function createServerNotify(
  { settings, log, readSecret = async (given) => given }: ServerOptions,
  { connection, engine }: StoreParts,
  clock: ServerClock,
): NotifyParts {
  const notificationMetrics = createNotificationMetrics()
  const { storage } = connection
  const channels = createChannels({
    configured: settings['alerts.channels'],
    readSecret: async (secret) => (await readSecret(secret)).reveal(),
    storage,
    engine,
    clock,
  })
  const notifier = createNotifier({
    engine,
    storage,
    clock,
    channels,
    addresses: {
      isLoopbackAllowed: settings['webhooks.loopback_allowed'] ?? settings.access === 'off',
      allowed: settings['webhooks.allowed_targets'],
    },
    timeoutMs: settings['alerts.send_timeout'],
    giveUpUs: settings['alerts.give_up_after'] * usPerMs,
    onAttempt: (report) => {
      notificationMetrics.count(report.kind, report.outcome, report.result.latencyMs)
      logAttempt(log, report)
    },
    onError: (error) => log.warn({ err: error }, 'work on notifications failed; will retry'),
  })
  return { notifier, notificationMetrics }
}

function logAttempt(log: Logger, { kind, channel, notification, outcome, result }: DeliveryReport): void {
  const fields = { channel, kind, notification }
  if (result.isDelivered) {
    const { refused = [] } = result
    if (refused.length > 0) log.warn({ ...fields, refused }, 'a notification was refused for some recipients')
    else log.info(fields, 'a notification was delivered')
    return
  }
  const failure = { ...fields, error_code: result.errorCode, reason: result.message }
  if (outcome === 'retried') log.warn(failure, 'a notification could not be delivered; will retry')
  else log.error(failure, 'a notification was given up: it is a dead letter in _alerts.dead')
}
