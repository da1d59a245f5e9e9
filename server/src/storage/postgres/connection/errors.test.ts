import { describe, expect, it } from 'vitest'
import { KnownError } from '../../../errors.ts'
import { isConnectionLost, isRetryable, OutcomeUnknownError, toKnownError } from './errors.ts'

const place = 'PostgreSQL at db:5432/redrive'

function failed(code: string, message = 'it said this'): Error {
  return Object.assign(new Error(message), { code })
}

function seen(error: unknown): Readonly<{ code: string; message: string; publicMessage: string }> {
  if (!(error instanceof KnownError)) throw error
  return { code: error.code, message: error.message, publicMessage: error.publicMessage }
}

describe('an error of the driver', () => {
  it.each([
    ['ECONNREFUSED', 'STORE_UNAVAILABLE'],
    ['ECONNRESET', 'STORE_UNAVAILABLE'],
    ['57P01', 'STORE_UNAVAILABLE'],
    ['53300', 'STORE_UNAVAILABLE'],
    ['25006', 'STORE_UNAVAILABLE'],
    ['57014', 'STORE_UNAVAILABLE'],
    ['40P01', 'STORE_UNAVAILABLE'],
    ['53100', 'STORE_FULL'],
    ['28P01', 'STORE_REFUSED'],
    ['3D000', 'STORE_REFUSED'],
    ['22003', 'BAD_REQUEST'],
  ])('%s is told as %s, with the place for the log and without it for callers', (code, known) => {
    const { publicMessage, ...error } = seen(toKnownError(failed(code, `said by db:5432 about "me"`), place))
    expect(error.code).toBe(known)
    if (known !== 'BAD_REQUEST') expect(error.message).toContain(place)
    expect(publicMessage).not.toMatch(/db|5432|"me"/)
  })

  it('in the middle of a commit says that the outcome is unknown', () => {
    const told = toKnownError(new OutcomeUnknownError(failed('ECONNRESET')), place)
    expect(told).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(seen(told)).toMatchObject({
      message: `lost the connection to ${place} while writing, so whether the write was kept is unknown: it said this`,
      publicMessage:
        'lost the connection to the store while writing, so whether the write was kept is unknown: ECONNRESET',
    })
  })

  it('that nobody foresaw is passed on as it is', () => {
    const defect = failed('42601', 'syntax error')
    expect(toKnownError(defect, place)).toBe(defect)
    const known = new KnownError('QUEUE_NOT_FOUND', 'there is none')
    expect(toKnownError(known, place)).toBe(known)
  })

  it('is worth another try only when the database undid everything', () => {
    expect(['40001', '40P01', 'RD001'].map((code) => isRetryable(failed(code)))).toEqual([true, true, true])
    expect(isRetryable(new OutcomeUnknownError(failed('40001')))).toBe(false)
    expect(isConnectionLost(failed('40001'))).toBe(false)
    expect(isConnectionLost(new Error('Connection terminated unexpectedly'))).toBe(true)
  })
})
