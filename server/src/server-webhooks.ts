import { defaultWebhookOptions, type WebhookOptions } from './api/webhook/options.ts'
import { toDeliveryRules, toDispatchRules } from './config/delivery-rules.ts'
import type { Settings } from './config/settings/settings.ts'
import { type Clock, usPerMs } from './core/time/instant.ts'
import type { Tracing } from './core/trace/tracing.ts'
import { createWebhooks, type Webhooks } from './drivers/webhook/webhooks.ts'
import type { Engine } from './engine/engine.ts'
import type { PushMetrics } from './ops/metrics/push-metrics.ts'
import type { ServerOptions } from './server-options.ts'
import type { StoreReads } from './storage/contract/storage.ts'
export function toWebhookOptions(settings: Settings): WebhookOptions {
  const scheduleDelayUsMin = settings['webhooks.schedule_delay_min'] * usPerMs
  return { ...defaultWebhookOptions, scheduleDelayUsMin }
}

export function createServerWebhooks(
  { settings, log }: ServerOptions,
  storage: StoreReads,
  engine: Engine,
  clock: Clock,
  metrics: PushMetrics,
  tracing: Tracing | undefined,
): Webhooks {
  const isLoopbackAllowed = settings['webhooks.loopback_allowed'] ?? settings.access === 'off'
  return createWebhooks({
    storage: () => storage,
    engine: () => engine,
    clock,
    deliveryRules: toDeliveryRules(settings),
    dispatchRules: toDispatchRules(settings),
    addresses: { isLoopbackAllowed, allowed: settings['webhooks.allowed_targets'] },
    schedule: {
      intervalMs: settings['webhooks.schedule_interval'],
      batchMax: settings['webhooks.schedule_batch'],
    },
    isRecovering: settings['webhooks.recovery_enabled'],
    ...(tracing !== undefined && { tracing }),
    onAttempt: metrics.count,
    onError: (error) => log.warn({ err: error }, 'work on webhooks failed; will retry'),
  })
}
