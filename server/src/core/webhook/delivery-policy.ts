/** The policy of the queue of a webhook consumer: its timeouts and retries. */

import type { Failure } from '../items/item.ts'
import { type Delivery, foreverUs, type PolicyChanges } from '../items/queue.ts'
import { retriesExhausted } from '../items/transitions.ts'
import { usPerMs } from '../time/instant.ts'

/** The rules that hold for all consumers. They come from the settings. */
export type DeliveryRules = Readonly<{
  /** How long a push may take. */
  connectionTimeoutUs: number
  /** The time that background work may be late. */
  rationalDelayUs: number
  /** The retries after the first attempt. */
  retriesMax: number
  /** The delays before the first retries. Later delays grow by the last one. */
  retryDelaysUs: readonly number[]
}>

export const defaultDeliveryRules: DeliveryRules = {
  connectionTimeoutUs: 30_000_000,
  rationalDelayUs: 2_000_000,
  retriesMax: 5,
  retryDelaysUs: [5_000_000, 30_000_000, 60_000_000],
}

const answerUs = 250 * usPerMs

/** How long a job may be INFLIGHT before it goes back to QUEUED. */
export function inflightUs(rules: DeliveryRules, incrementalSeconds = 0): number {
  return rules.connectionTimeoutUs + answerUs + rules.rationalDelayUs + incrementalSeconds * 1_000_000
}

export function consumerPolicy(delivery: Delivery, rules: DeliveryRules): PolicyChanges {
  return {
    delivery,
    leaseTimeoutUs: inflightUs(rules),
    // Jobs neither expire nor leave as DELIVERED until their message is pruned.
    expireTimeoutUs: foreverUs,
    doneRetentionUs: foreverUs,
    attemptsMax: rules.retriesMax,
    retry: { kind: 'growing-list', delaysUs: rules.retryDelaysUs, jitter: 0 },
  }
}

/** Whether a queue has the policy of its consumer, or the settings have changed since. */
export function hasConsumerPolicy(policy: PolicyChanges, wanted: PolicyChanges): boolean {
  return Object.entries(wanted).every(
    ([name, value]) => JSON.stringify(policy[name as keyof PolicyChanges]) === JSON.stringify(value),
  )
}

/**
 * The counter `retryAttemptCount` of a dead job. The attempts of an item include the first one. A job that
 * died while it was leased never started its next attempt.
 */
export function countRetriesOfDead(failure: Pick<Failure, 'errorCode' | 'attempts'> | null): number {
  if (failure === null) return 0
  return failure.errorCode === retriesExhausted ? failure.attempts : Math.max(failure.attempts - 1, 0)
}
