/** How long an item waits before its next attempt. Durations are whole microseconds. */
export type RetryPolicy =
  | Readonly<{ kind: 'fixed'; delayUs: number; jitter: number }>
  | Readonly<{ kind: 'list'; delaysUs: readonly number[]; jitter: number }>
  | Readonly<{ kind: 'exponential'; delayUsMin: number; delayUsMax: number; jitter: number }>

/** Back to the tail of the queue at once, as the Queue API does. */
export const retryAtOnce: RetryPolicy = { kind: 'fixed', delayUs: 0, jitter: 0 }

/**
 * The wait after attempt number `attempts` (1, 2, …) failed. `jitter` 0.2 spreads it by ±20 %;
 * `random` gives numbers in [0, 1): chance comes in from outside.
 */
export function retryDelayUs(policy: RetryPolicy, attempts: number, random: () => number): number {
  const delayUs = plainDelayUs(policy, Math.max(attempts, 1))
  return Math.round(delayUs * (1 + policy.jitter * (2 * random() - 1)))
}

function plainDelayUs(policy: RetryPolicy, attempts: number): number {
  switch (policy.kind) {
    case 'fixed':
      return policy.delayUs
    case 'list':
      return policy.delaysUs[Math.min(attempts, policy.delaysUs.length) - 1] ?? 0
    case 'exponential': {
      // Bounded before the power is taken: with no minimum delay, 0 * 2 ** 1100 is NaN, and a NaN
      // delay reaches the database as no time at all.
      const doublings = Math.min(attempts - 1, 50)
      return Math.min(policy.delayUsMin * 2 ** doublings, policy.delayUsMax)
    }
  }
}
