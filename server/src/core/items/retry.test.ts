import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { minute, second } from '../../../test/make.ts'
import { type RetryPolicy, retryDelayUs } from './retry.ts'

const middle = () => 0.5
const delays = (policy: RetryPolicy, count: number) =>
  Array.from({ length: count }, (_, index) => retryDelayUs(policy, index + 1, middle) / second)

describe('retryDelayUs', () => {
  it('a fixed delay is the same after every attempt', () => {
    expect(delays({ kind: 'fixed', delayUs: 5 * second, jitter: 0 }, 3)).toEqual([5, 5, 5])
  })

  it('a list of delays is used in order, and its last delay is repeated', () => {
    const list = [1, 5, 30].map((seconds) => seconds * second)
    expect(delays({ kind: 'list', delaysUs: list, jitter: 0 }, 5)).toEqual([1, 5, 30, 30, 30])
    expect(delays({ kind: 'list', delaysUs: [], jitter: 0 }, 2)).toEqual([0, 0])
  })

  it('an exponential delay doubles up to its maximum', () => {
    const policy = { kind: 'exponential', delayUsMin: second, delayUsMax: minute, jitter: 0 } as const
    expect(delays(policy, 8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
  })

  it('a delay is a whole number of microseconds within its jitter, for every attempt', () => {
    const policy = { kind: 'exponential', delayUsMin: 0, delayUsMax: minute, jitter: 0.2 } as const
    const chance = fc.double({ min: 0, max: 0.999999, noNaN: true })
    fc.assert(
      fc.property(fc.nat(100_000), fc.nat(1_000_000), chance, (attempts, delayUsMin, random) => {
        const delayUs = retryDelayUs({ ...policy, delayUsMin }, attempts, () => random)
        expect(Number.isSafeInteger(delayUs)).toBe(true)
        expect(delayUs).toBeGreaterThanOrEqual(0)
        expect(delayUs).toBeLessThanOrEqual(1.2 * minute)
      }),
    )
  })
})
