import { describe, expect, it } from 'vitest'
import { KnownError } from '../../../errors.ts'
import { isConnectionLost, isRetryable, OutcomeUnknownError, toKnownError } from './errors.ts'

const address = 'PostgreSQL at db:5432/redrive'

function failed(code: string, message = 'a message of the driver'): Error {
  return Object.assign(new Error(message), { code })
}

function toParts(error: unknown): Readonly<{ code: string; message: string; publicMessage: string }> {
  if (!(error instanceof KnownError)) throw error
  return { code: error.code, message: error.message, publicMessage: error.publicMessage }
}

describe('errors of the driver', () => {
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
  ])('the error %s becomes %s, with the address for the log and without it for callers', (code, known) => {
    const { publicMessage, ...error } = toParts(
      toKnownError(failed(code, `refused by db:5432 for "me"`), address),
    )
    expect(error.code).toBe(known)
    if (known !== 'BAD_REQUEST') expect(error.message).toContain(address)
    expect(publicMessage).not.toMatch(/db|5432|"me"/)
  })

  it('an error during a commit reports that the outcome is unknown', () => {
    const known = toKnownError(new OutcomeUnknownError(failed('ECONNRESET')), address)
    expect(known).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(toParts(known)).toMatchObject({
      message: `lost the connection to ${address} during a write, so its outcome is unknown: a message of the driver`,
      publicMessage: 'lost the connection to the store during a write, so its outcome is unknown: ECONNRESET',
    })
  })

  it('an unexpected error is passed on unchanged', () => {
    const defect = failed('42601', 'syntax error')
    expect(toKnownError(defect, address)).toBe(defect)
    const known = new KnownError('QUEUE_NOT_FOUND', 'there is none')
    expect(toKnownError(known, address)).toBe(known)
  })

  it('an error is retryable only if the database rolled everything back', () => {
    expect(['40001', '40P01', 'RD001'].map((code) => isRetryable(failed(code)))).toEqual([true, true, true])
    expect(isRetryable(new OutcomeUnknownError(failed('40001')))).toBe(false)
    expect(isConnectionLost(failed('40001'))).toBe(false)
    expect(isConnectionLost(new Error('Connection terminated unexpectedly'))).toBe(true)
  })
})
