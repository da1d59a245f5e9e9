/** The rules of webhook delivery that the settings make. */
import { parseDuration } from '../core/time/duration.ts'
import { usPerMs } from '../core/time/instant.ts'
import type { BreakerRules } from '../core/webhook/delivery/breaker.ts'
import type { DeliveryRules } from '../core/webhook/delivery-policy.ts'
import type { Settings } from './settings/settings.ts'

export function toDeliveryRules(settings: Settings): DeliveryRules {
  return {
    connectionTimeoutUs: settings['webhooks.timeout'] * usPerMs,
    rationalDelayUs: settings['webhooks.rational_delay'] * usPerMs,
    retriesMax: settings['webhooks.retries_max'],
    retryDelaysUs: settings['webhooks.retry_delays'].map(parseDuration),
  }
}

/** A server pushes to loopback only if a setting or protected mode allows it. */
export function toDispatchRules(settings: Settings) {
  return {
    parallelMax: settings['webhooks.parallel_max'],
    queuedMax: settings['webhooks.queued_max'],
    timeoutMs: settings['webhooks.timeout'],
    payloadBytesMax,
    tokenHeaderName: settings['webhooks.token_header_name'],
    userAgent: settings['webhooks.user_agent'],
    permanentStatuses: settings['webhooks.permanent_statuses'].map(Number),
    retryAfterUsMax: settings['webhooks.retry_after_max'] * usPerMs,
    breaker: toBreakerRules(settings),
    disableAfterMs: settings['webhooks.disable_after'],
    attemptRetentionUs: settings['webhooks.attempt_retention'] * usPerMs,
  }
}

/** Payloads of jobs that wait for their push, or are pushed. */
const payloadBytesMax = 256 * 1_024 * 1_024
/** The share of failures that opens a breaker, in a window with enough attempts. */
const failureRatioMax = 0.9
const requestsMin = 500
const windowUs = 60_000 * usPerMs
/** The time to store the start and the end of a probe. */
const probeStoreMs = 3_000

function toBreakerRules(settings: Settings): BreakerRules {
  return {
    failuresMax: settings['webhooks.breaker_failures'],
    failureRatioMax,
    requestsMin,
    windowUs,
    holdUs: settings['webhooks.breaker_hold'] * usPerMs,
    holdUsMax: Math.max(settings['webhooks.breaker_hold_max'], settings['webhooks.breaker_hold']) * usPerMs,
    probeUs: (settings['webhooks.timeout'] + probeStoreMs) * usPerMs,
  }
}
