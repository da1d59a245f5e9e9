/** Decides whether a job is delivered, retried or dead after an attempt to push it. */

import { type RetryPolicy, retryDelayUs } from '../../items/retry.ts'
import { addDuration, type Instant } from '../../time/instant.ts'
import type { Attempt, PushFailure } from '../attempt.ts'
import { parseRetryAfter } from './retry-after.ts'

export type DeliveryOutcome =
  | Readonly<{ kind: 'delivered' }>
  /** `availableAt` undefined: the back-off of the consumer decides. */
  | Readonly<{ kind: 'retry'; availableAt: Instant | undefined; error: DeliveryError }>
  /** No retry can help. */
  | Readonly<{ kind: 'dead'; error: DeliveryError }>
  /** This server stopped the push: the attempt does not count. */
  | Readonly<{ kind: 'returned' }>

/** In the form that a retry takes. */
export type DeliveryError = Readonly<{ errorCode: string; errorClass: string; message: string }>

export type OutcomeRules = Readonly<{
  permanentStatuses: readonly number[]
  retryAfterUsMax: number
  retry: RetryPolicy
}>

/** `attempts`: with this one. */
export function decideDeliveryOutcome(
  attempt: Attempt,
  attempts: number,
  rules: OutcomeRules,
  now: Instant,
): DeliveryOutcome {
  if (attempt.isDelivered) return { kind: 'delivered' }
  const { failure, status } = attempt
  if (failure.kind === 'aborted') return { kind: 'returned' }
  const error = toDeliveryError(failure)
  if (status !== null && rules.permanentStatuses.includes(status)) return { kind: 'dead', error }
  const asked = parseRetryAfter(failure.retryAfter, now, rules.retryAfterUsMax)
  // Retry-After can postpone the next attempt, not bring it forward.
  const backoff = addDuration(
    now,
    retryDelayUs(rules.retry, attempts, () => 0.5),
  )
  const availableAt = asked !== undefined && asked > backoff ? asked : undefined
  return { kind: 'retry', availableAt, error }
}

function toDeliveryError(failure: PushFailure): DeliveryError {
  return { errorCode: failure.errorCode, errorClass: failure.errorClass, message: failure.message }
}
