import { create, toJson } from '@bufbuild/protobuf'
import { TimestampSchema } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import fc from '../../../../test/fast-check.ts'
import { instantMax, instantMin } from '../../../core/time/instant.ts'
import { formatTime, toInstant, toTimestamp, toTimestampOrZero } from './times.ts'

describe('times on the wire', () => {
  it('a time is written with 0, 3 or 6 fraction digits', () => {
    const second = Date.UTC(2026, 0, 2, 3, 4, 5) * 1_000
    expect(formatTime(second)).toBe('2026-01-02T03:04:05Z')
    expect(formatTime(second + 120_000)).toBe('2026-01-02T03:04:05.120Z')
    expect(formatTime(second + 6)).toBe('2026-01-02T03:04:05.000006Z')
    expect(formatTime(-1)).toBe('1969-12-31T23:59:59.999999Z')
  })

  it('no time is written as the zero time, and the zero time is read as no time', () => {
    expect(toJson(TimestampSchema, toTimestampOrZero(null))).toBe('0001-01-01T00:00:00Z')
    expect(toInstant(toTimestampOrZero(null))).toBe(null)
    expect(toInstant(undefined)).toBe(null)
  })

  it('a time that cannot be stored becomes the first or the last storable instant', () => {
    expect(toInstant(create(TimestampSchema, { seconds: 253_402_300_799n }))).toBe(instantMax)
    expect(toInstant(create(TimestampSchema, { seconds: -62_135_596_799n }))).toBe(instantMin)
  })

  it('an instant survives the conversion to JSON and to protobuf and back', () => {
    fc.assert(
      fc.property(fc.integer({ min: -5e15, max: 8e15 }), (instant) => {
        const timestamp = toTimestamp(instant)
        expect(toInstant(timestamp)).toBe(instant)
        expect(toJson(TimestampSchema, timestamp)).toBe(formatTime(instant))
      }),
    )
  })
})
