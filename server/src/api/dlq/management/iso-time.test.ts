import { describe, expect, it } from 'vitest'
import { instantMax, instantMin } from '../../../core/time/instant.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { parseIsoTime } from './iso-time.ts'

const read = (text: string): string => formatInstant(parseIsoTime('query.from', text).first)

describe('an ISO 8601 time', () => {
  it.each([
    ['2025-03-01T08:00:00Z', '2025-03-01T08:00:00.000000Z'],
    ['2025-03-01t08:00:00z', '2025-03-01T08:00:00.000000Z'],
    ['2025-03-01T08:00:00', '2025-03-01T08:00:00.000000Z'],
    ['2025-03-01 08:00', '2025-03-01T08:00:00.000000Z'],
    ['2025-03-01T08:00:00.1234567Z', '2025-03-01T08:00:00.123456Z'],
    ['2025-03-01T08:00:00,5', '2025-03-01T08:00:00.500000Z'],
    ['2025-03-01T08:00:00+02:00', '2025-03-01T06:00:00.000000Z'],
    ['2025-03-01T08:00:00 02:00', '2025-03-01T06:00:00.000000Z'],
    ['2025-03-01T08:00:00-0530', '2025-03-01T13:30:00.000000Z'],
    ['2025-03-01T08:00+01', '2025-03-01T07:00:00.000000Z'],
    [' 2024-02-29 ', '2024-02-29T00:00:00.000000Z'],
  ])('%j is read as %s', (text, instant) => {
    expect(read(text)).toBe(instant)
  })

  it('a date without a time means the whole day', () => {
    const { first, last } = parseIsoTime('query.to', '2025-03-01')
    expect([first, last].map(formatInstant)).toEqual([
      '2025-03-01T00:00:00.000000Z',
      '2025-03-01T23:59:59.999999Z',
    ])
  })

  it('a time that cannot be stored becomes the first or the last storable instant', () => {
    expect(parseIsoTime('f', '9999-12-31T23:59:59Z').first).toBe(instantMax)
    expect(parseIsoTime('f', '0001-01-01').first).toBe(instantMin)
  })

  it.each([
    '',
    'yesterday',
    '2025-02-30',
    '2025-13-01',
    '2025-03-01T24:00:00Z',
    '2025-03-01T08:61',
    '1740816000',
  ])('%j is refused, and the error names the field', (text) => {
    expect(() => parseIsoTime('query.from', text)).toThrow(
      new InvalidRequest([{ field: 'query.from', message: 'is not an ISO 8601 date or time' }]),
    )
  })
})
