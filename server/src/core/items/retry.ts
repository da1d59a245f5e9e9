/** Decides how long an item waits before its next attempt. Durations are whole microseconds. */
export type RetryPolicy =
  | Readonly<{ kind: 'fixed'; delayUs: number; jitter: number }>
  | Readonly<{ kind: 'list'; delaysUs: readonly number[]; jitter: number }>
  /** Beyond the list, the delay grows: number r of n delays has (r - n + 1) times the last one. */
  | Readonly<{ kind: 'growing-list'; delaysUs: readonly number[]; jitter: number }>
  | Readonly<{ kind: 'exponential'; delayUsMin: number; delayUsMax: number; jitter: number }>

/** The item goes to the tail of its queue immediately, as in the Queue API. */
export const retryImmediately: RetryPolicy = { kind: 'fixed', delayUs: 0, jitter: 0 }

/**
 * The delay after attempt number `attempts` (1, 2, …) failed. A `jitter` of 0.2 spreads it by ±20 %; `random`
 * returns numbers in [0, 1).
 */
export function retryDelayUs(policy: RetryPolicy, attempts: number, random: () => number): number {
  const delayUs = delayUsWithoutJitter(policy, Math.max(attempts, 1))
  return Math.round(delayUs * (1 + policy.jitter * (2 * random() - 1)))
}

function delayUsWithoutJitter(policy: RetryPolicy, attempts: number): number {
  switch (policy.kind) {
    case 'fixed':
      return policy.delayUs
    case 'list':
      return policy.delaysUs[Math.min(attempts, policy.delaysUs.length) - 1] ?? 0
    case 'growing-list': {
      const { delaysUs } = policy
      const factor = Math.max(attempts - delaysUs.length + 1, 1)
      return factor * (delaysUs[Math.min(attempts, delaysUs.length) - 1] ?? 0)
    }
    case 'exponential': {
      // Bound the exponent before raising: with no minimum delay, 0 * 2 ** 1100 is NaN, and a NaN delay
      // reaches the database as an invalid date.
      const doublings = Math.min(attempts - 1, 50)
      return Math.min(policy.delayUsMin * 2 ** doublings, policy.delayUsMax)
    }
  }
}
