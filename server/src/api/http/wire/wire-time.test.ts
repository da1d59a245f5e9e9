import { describe, expect, it } from 'vitest'
import { toInstant } from '../../../core/time/instant.ts'
import { formatInstant, parseInstant } from './wire-time.ts'

describe('a time on the wire', () => {
  it.each([
    [toInstant(new Date('2026-01-02T03:04:05.678Z')) + 9, '2026-01-02T03:04:05.678009Z'],
    [0, '1970-01-01T00:00:00.000000Z'],
    [999, '1970-01-01T00:00:00.000999Z'],
    [-1, '1969-12-31T23:59:59.999999Z'],
  ])('instant %i is written with microseconds', (instant, text) => expect(formatInstant(instant)).toBe(text))

  it.each([
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.000000Z'],
    ['2026-01-02t03:04:05.1234567z', '2026-01-02T03:04:05.123456Z'],
    ['2026-01-02T03:04:05+01:30', '2026-01-02T01:34:05.000000Z'],
    ['2024-02-29T23:59:59-00:01', '2024-03-01T00:00:59.000000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000000Z'],
  ])('%s is read as an RFC 3339 time', (text, shown) =>
    expect(formatInstant(parseInstant(text) ?? Number.NaN)).toBe(shown),
  )

  it.each([
    '2026-02-30T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T23:60:00Z',
    '2026-01-01T23:59:60Z',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00',
    '2026-01-01',
    '2026-01-01 00:00:00Z',
    'today',
    '',
  ])('%j is not an RFC 3339 time', (text) => expect(parseInstant(text)).toBeUndefined())
})
