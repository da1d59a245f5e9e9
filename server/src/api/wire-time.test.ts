import { describe, expect, it } from 'vitest'
import { fromDate } from '../core/instant.ts'
import { formatInstant } from './wire-time.ts'

describe('a time on the wire', () => {
  it.each([
    [fromDate(new Date('2026-01-02T03:04:05.678Z')) + 9, '2026-01-02T03:04:05.678009Z'],
    [0, '1970-01-01T00:00:00.000000Z'],
    [999, '1970-01-01T00:00:00.000999Z'],
    [-1, '1969-12-31T23:59:59.999999Z'],
  ])('shows %i to the microsecond', (instant, text) => expect(formatInstant(instant)).toBe(text))
})
