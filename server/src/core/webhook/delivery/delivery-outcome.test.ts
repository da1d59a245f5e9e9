import { describe, expect, it } from 'vitest'
import { hour, noon, second } from '../../../../test/make.ts'
import type { FailedAttempt } from '../attempt.ts'
import { decideDeliveryOutcome, type OutcomeRules } from './delivery-outcome.ts'

const rules: OutcomeRules = {
  permanentStatuses: [410],
  retryAfterUsMax: hour,
  retry: { kind: 'fixed', delayUs: 30 * second, jitter: 0 },
}

function aFailure(status: number | null, retryAfter: string | null = null): FailedAttempt {
  const errorCode = status === null ? 'ECONNREFUSED' : `http_${status}`
  const failure = { errorClass: 'E', errorCode, message: 'm', retryAfter } as const
  const kind = status === null ? 'refused' : 'status'
  return {
    isDelivered: false,
    latencyMs: 1,
    address: null,
    status,
    response: null,
    failure: { kind, ...failure },
  }
}

const error = (errorCode: string) => ({ errorCode, errorClass: 'E', message: 'm' })

describe('the outcome of a push', () => {
  it('a 2xx status delivers the job', () => {
    const response = { bytes: new Uint8Array(), contentType: null, isTruncated: false }
    const attempt = {
      isDelivered: true,
      status: 200,
      response,
      latencyMs: 1,
      address: null,
      failure: null,
    } as const
    expect(decideDeliveryOutcome(attempt, 1, rules, noon)).toEqual({ kind: 'delivered' })
  })

  it('a failed push is retried after the back-off of the consumer', () => {
    const outcome = decideDeliveryOutcome(aFailure(500), 1, rules, noon)
    expect(outcome).toEqual({ kind: 'retry', availableAt: undefined, error: error('http_500') })
    expect(decideDeliveryOutcome(aFailure(null), 1, rules, noon)).toMatchObject({ kind: 'retry' })
  })

  it('Retry-After postpones the retry, but never brings it forward', () => {
    const at = (retryAfter: string) => decideDeliveryOutcome(aFailure(503, retryAfter), 1, rules, noon)
    expect(at('120')).toMatchObject({ kind: 'retry', availableAt: noon + 120 * second })
    expect(at('10')).toMatchObject({ kind: 'retry', availableAt: undefined })
    expect(at('999999')).toMatchObject({ kind: 'retry', availableAt: noon + hour })
  })

  it('a permanent status kills the job, whatever Retry-After says', () => {
    const outcome = decideDeliveryOutcome(aFailure(410, '120'), 1, rules, noon)
    expect(outcome).toEqual({ kind: 'dead', error: error('http_410') })
  })

  it('a push that this server ended does not count', () => {
    const { failure, ...rest } = aFailure(null)
    const aborted = { ...rest, failure: { ...failure, kind: 'aborted' as const } }
    expect(decideDeliveryOutcome(aborted, 1, rules, noon)).toEqual({ kind: 'returned' })
  })
})
