/** The rules of deliveries that come from the settings of the server. */
import type { RetryPolicy } from '../../../core/items/retry.ts'
import type { BreakerRules } from '../../../core/webhook/delivery/breaker.ts'
import type { ConsumerDelivery } from '../../../core/webhook/delivery/consumer-delivery.ts'
import type { OutcomeRules } from '../../../core/webhook/delivery/delivery-outcome.ts'

export type DispatchRules = Readonly<{
  /** Pushes at the same time, of all consumers. */
  parallelMax: number
  /** Leased jobs in memory that no push has started for. */
  queuedMax: number
  /** How long a push may take. */
  timeoutMs: number
  /** Payloads in memory. */
  payloadBytesMax: number
  tokenHeaderName: string
  userAgent: string
  permanentStatuses: readonly number[]
  retryAfterUsMax: number
  breaker: BreakerRules
  /** Disable a consumer after this time of nothing but failures. 0: never. */
  disableAfterMs: number
  /** How long attempts and figures are kept. */
  attemptRetentionUs: number
}>

/** Attempts of one job that are stored. Later ones only count. */
export const attemptsPerJobMax = 100

export function outcomeRulesOf(
  { settings }: ConsumerDelivery,
  rules: DispatchRules,
  retry: RetryPolicy,
): OutcomeRules {
  const permanentStatuses = settings.permanentStatuses ?? rules.permanentStatuses
  return { permanentStatuses, retryAfterUsMax: rules.retryAfterUsMax, retry }
}

export function breakerRulesOf({ settings }: ConsumerDelivery, { breaker }: DispatchRules): BreakerRules {
  const { breakerFailuresMax } = settings
  return breakerFailuresMax === null ? breaker : { ...breaker, failuresMax: breakerFailuresMax }
}
