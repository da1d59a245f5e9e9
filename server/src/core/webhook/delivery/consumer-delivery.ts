/**
 * The delivery of a consumer: its own settings, its pause, its circuit breaker, and whether it was disabled.
 * It is stored as one document with a version, so that a change by another server is never overwritten.
 */
import { type Instant, usPerMs } from '../../time/instant.ts'
import { type BreakerState, closedBreaker } from './breaker.ts'

/** Null: the server's setting applies. */
export type DeliverySettings = Readonly<{
  /** Pushes at the same time, by all servers together. */
  parallelMax: number | null
  /** Pushes per second, by all servers together. */
  pushesPerSecondMax: number | null
  timeoutMs: number | null
  permanentStatuses: readonly number[] | null
  /** Failures in a row that open the breaker. 0: it never opens. */
  breakerFailuresMax: number | null
  /** Disable the consumer after this time of nothing but failures. 0: never. */
  disableAfterMs: number | null
}>

export type ConsumerDelivery = Readonly<{
  settings: DeliverySettings
  breaker: BreakerState
  /** The first failure since the last delivery. Null: the last attempt was delivered, or there was none. */
  failingSince: Instant | null
  paused: Readonly<{ at: Instant; reason: string }> | null
  disabled: Readonly<{ at: Instant; reason: string }> | null
}>

export const defaultDeliverySettings: DeliverySettings = {
  parallelMax: null,
  pushesPerSecondMax: null,
  timeoutMs: null,
  permanentStatuses: null,
  breakerFailuresMax: null,
  disableAfterMs: null,
}

export const newDelivery: ConsumerDelivery = {
  settings: defaultDeliverySettings,
  breaker: closedBreaker,
  failingSince: null,
  paused: null,
  disabled: null,
}

export type DeliveryStatus = 'active' | 'held' | 'paused' | 'disabled'

export function readDeliveryStatus({ disabled, paused, breaker }: ConsumerDelivery): DeliveryStatus {
  if (disabled !== null) return 'disabled'
  if (paused !== null) return 'paused'
  return breaker.state === 'closed' ? 'active' : 'held'
}

/** Records that attempts ended. Returns the same delivery if nothing changed. */
export function recordHealth(
  delivery: ConsumerDelivery,
  isDelivered: boolean,
  now: Instant,
): ConsumerDelivery {
  if (isDelivered) return delivery.failingSince === null ? delivery : { ...delivery, failingSince: null }
  return delivery.failingSince === null ? { ...delivery, failingSince: now } : delivery
}

/**
 * Disables a consumer whose attempts have done nothing but fail for too long. The failures themselves must
 * span that time: a consumer that failed once and got no more jobs since then stays enabled.
 */
export function disableIfFailing(
  delivery: ConsumerDelivery,
  lastFailedAt: Instant | null,
  disableAfterMs: number,
  now: Instant,
): ConsumerDelivery {
  const { failingSince, disabled } = delivery
  if (disableAfterMs === 0 || failingSince === null || lastFailedAt === null || disabled !== null)
    return delivery
  if (lastFailedAt - failingSince < disableAfterMs * usPerMs) return delivery
  return { ...delivery, disabled: { at: now, reason: 'all attempts failed for too long' } }
}

export function pauseDelivery(delivery: ConsumerDelivery, reason: string, now: Instant): ConsumerDelivery {
  return delivery.paused === null ? { ...delivery, paused: { at: now, reason } } : delivery
}

export function resumeDelivery(delivery: ConsumerDelivery): ConsumerDelivery {
  return delivery.paused === null ? delivery : { ...delivery, paused: null }
}

/** Starts again with a closed breaker, as if the consumer were new. */
export function enableDelivery(delivery: ConsumerDelivery): ConsumerDelivery {
  return { ...delivery, disabled: null, failingSince: null, breaker: closedBreaker }
}
