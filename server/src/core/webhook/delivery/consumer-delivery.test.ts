import { describe, expect, it } from 'vitest'
import { minute, noon, second } from '../../../../test/make.ts'
import {
  type ConsumerDelivery,
  disableIfFailing,
  enableDelivery,
  newDelivery,
  readDeliveryStatus,
  recordHealth,
} from './consumer-delivery.ts'

const disableAfterMs = 60_000
const failing: ConsumerDelivery = recordHealth(newDelivery, false, noon)

describe('a consumer that fails', () => {
  it('a failing consumer keeps the time of its first failure until an attempt is delivered', () => {
    expect(recordHealth(failing, false, noon + second).failingSince).toBe(noon)
    expect(recordHealth(failing, true, noon + second).failingSince).toBeNull()
  })

  it('a consumer is disabled when its failures span the time, and enabled with a fresh start', () => {
    const before = disableIfFailing(failing, noon + minute - 1, disableAfterMs, noon + minute)
    expect(before).toBe(failing)
    const disabled = disableIfFailing(failing, noon + minute, disableAfterMs, noon + minute)
    expect(readDeliveryStatus(disabled)).toBe('disabled')
    expect(enableDelivery(disabled)).toMatchObject({ disabled: null, failingSince: null })
  })

  it('time alone disables no consumer: one failure and then no jobs is not a time of failures', () => {
    for (const lastFailedAt of [noon, null])
      expect(disableIfFailing(failing, lastFailedAt, disableAfterMs, noon + 100 * minute)).toBe(failing)
  })

  it('with 0 a consumer is never disabled, and otherwise only once', () => {
    expect(disableIfFailing(failing, noon + 100 * minute, 0, noon + 100 * minute)).toBe(failing)
    const disabled = disableIfFailing(failing, noon + minute, disableAfterMs, noon + minute)
    expect(disableIfFailing(disabled, noon + 2 * minute, disableAfterMs, noon + 2 * minute)).toBe(disabled)
  })
})
