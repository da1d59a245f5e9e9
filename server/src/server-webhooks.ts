import { defaultWebhookOptions, type WebhookOptions } from './api/webhook/options.ts'
import { toDeliveryRules, toDispatchRules } from './config/delivery-rules.ts'
import { toPruning } from './config/message-pruning.ts'
import type { Secret } from './config/secrets/secret.ts'
import type { Settings } from './config/settings/settings.ts'
import { type Clock, usPerMs } from './core/time/instant.ts'
import type { Tracing } from './core/trace/tracing.ts'
import type { ConfiguredEntity, ConfiguredWebhooks } from './core/webhook/configured.ts'
import { createWebhooks, type Webhooks } from './drivers/webhook/webhooks.ts'
import type { Engine } from './engine/engine.ts'
import type { PushMetrics } from './ops/metrics/push-metrics.ts'
import type { ServerOptions } from './server-options.ts'
import type { DeliveryChange } from './storage/contract/deliveries.ts'
import type { StoreReads } from './storage/contract/storage.ts'

const healthTexts: Readonly<Partial<Record<DeliveryChange, string>>> = {
  'breaker-opened': 'the circuit breaker of a webhook consumer opened: its jobs wait',
  'breaker-closed': 'the circuit breaker of a webhook consumer closed',
  disabled: 'a webhook consumer was disabled: its jobs wait until it is enabled',
}

export function toWebhookOptions(settings: Settings): WebhookOptions {
  const scheduleDelayUsMin = settings['webhooks.schedule_delay_min'] * usPerMs
  const configured = {
    producers: settings['webhooks.producers'].map(withoutToken),
    channels: settings['webhooks.channels'].map(withoutToken),
    consumers: settings['webhooks.consumers'].map(withoutToken),
  }
  return { ...defaultWebhookOptions, scheduleDelayUsMin, configured }
}

function withoutToken<T extends ConfiguredEntity<Secret>>({ token, ...entity }: T): Omit<T, 'token'> {
  return entity
}

/** The configured producers, channels and consumers, with their tokens. */
export async function readConfigured({
  settings,
  readSecret = async (given) => given,
}: ServerOptions): Promise<ConfiguredWebhooks> {
  const resolve = <T extends ConfiguredEntity<Secret>>(rows: readonly T[]) =>
    Promise.all(
      rows.map(async ({ token, ...row }) => ({
        ...row,
        ...(token !== undefined && { token: (await readSecret(token)).reveal() }),
      })),
    )
  return {
    producers: await resolve(settings['webhooks.producers']),
    channels: await resolve(settings['webhooks.channels']),
    consumers: await resolve(settings['webhooks.consumers']),
  }
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
    ...toPruning(settings),
    onAttempt: metrics.count,
    onHealthChange: ({ channelId: channel, id: consumer }, change, reason) => {
      const level = change === 'breaker-closed' ? 'info' : 'warn'
      log[level]({ channel, consumer, ...(reason !== '' && { reason }) }, healthTexts[change] ?? change)
    },
    onError: (error) => log.warn({ err: error }, 'work on webhooks failed; will retry'),
  })
}
