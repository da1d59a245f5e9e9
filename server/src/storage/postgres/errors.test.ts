import { describe, expect, it } from 'vitest'
import { KnownError } from '../../errors.ts'
import { isConnectionLost, isWorthRepeating, OutcomeUnknown, toKnownError } from './errors.ts'

const place = 'PostgreSQL at db:5432/redrive'

function failed(code: string, message = 'it said this'): Error {
  return Object.assign(new Error(message), { code })
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
  ])('%s is told as %s, with the place', (code, known) => {
    const told = toKnownError(failed(code), place)
    expect(told).toMatchObject({ code: known })
    if (known !== 'BAD_REQUEST') expect((told as Error).message).toContain(place)
  })

  it('in the middle of a commit says that the outcome is unknown', () => {
    const told = toKnownError(new OutcomeUnknown(failed('ECONNRESET')), place)
    expect(told).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect((told as Error).message).toContain('unknown')
  })

  it('that nobody foresaw is passed on as it is', () => {
    const defect = failed('42601', 'syntax error')
    expect(toKnownError(defect, place)).toBe(defect)
    const known = new KnownError('QUEUE_NOT_FOUND', 'there is none')
    expect(toKnownError(known, place)).toBe(known)
  })

  it('is worth another try only when the database undid everything', () => {
    expect(['40001', '40P01', 'RD001'].map((code) => isWorthRepeating(failed(code)))).toEqual([
      true,
      true,
      true,
    ])
    expect(isWorthRepeating(new OutcomeUnknown(failed('40001')))).toBe(false)
    expect(isConnectionLost(failed('40001'))).toBe(false)
    expect(isConnectionLost(new Error('Connection terminated unexpectedly'))).toBe(true)
  })
})
