import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { formatDuration, normaliseDuration, parseDuration } from './duration.ts'

describe('parseDuration', () => {
  it.each([
    ['0', 0],
    ['-0', 0],
    ['+0', 0],
    ['0s', 0],
    ['300ms', 300_000],
    ['1.5s', 1_500_000],
    ['.5s', 500_000],
    ['1.s', 1_000_000],
    ['5m', 300_000_000],
    ['24h0m0s', 86_400_000_000],
    ['1h15m30.918273s', 4_530_918_273],
    ['-2m', -120_000_000],
    ['+5us', 5],
    ['5µs', 5],
    ['5\u03bcs', 5],
    ['10m5m', 900_000_000],
    ['0.3333333333333333333h', 1_199_999_999],
    ['2501999h', 9_007_196_400_000_000],
  ])('%s is parsed as %d microseconds', (text, micros) => {
    expect(parseDuration(text)).toBe(micros)
  })

  it('nanoseconds are cut off', () => {
    expect(parseDuration('1999ns')).toBe(1)
    expect(parseDuration('-1999ns')).toBe(-1)
  })

  it.each([
    ['foo', 'time: invalid duration "foo"'],
    ['', 'time: invalid duration ""'],
    ['-', 'time: invalid duration "-"'],
    ['.s', 'time: invalid duration ".s"'],
    ['+.s', 'time: invalid duration "+.s"'],
    ['--1s', 'time: invalid duration "--1s"'],
    [' 1s', 'time: invalid duration " 1s"'],
    ['10', 'time: missing unit in duration "10"'],
    ['1s10', 'time: missing unit in duration "1s10"'],
    ['1.2.3s', 'time: missing unit in duration "1.2.3s"'],
    ['10x', 'time: unknown unit "x" in duration "10x"'],
    ['1d', 'time: unknown unit "d" in duration "1d"'],
    ['5 m', 'time: unknown unit " m" in duration "5 m"'],
    ['1"', 'time: unknown unit "\\"" in duration "1\\""'],
    ['1é', 'time: unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"'],
    ['2562048h', 'time: invalid duration "2562048h"'],
    ['99999999999999999999s', 'time: invalid duration "99999999999999999999s"'],
  ])('%j is refused with the error message of the contract', (text, message) => {
    expect(() => parseDuration(text)).toThrow(new Error(message))
  })
})

describe('a duration of many digits', () => {
  it.each([
    ['digits', `${'9'.repeat(1_000_000)}s`],
    ['terms', '1s'.repeat(1_000_000)],
    ['characters of a unit', `1${'x'.repeat(1_000_000)}`],
  ])('with millions of %s is refused, and the message has only its start', (_, text) => {
    expect(() => parseDuration(text)).toThrow(new Error(`time: invalid duration "${text.slice(0, 64)}..."`))
    expect(() => normaliseDuration(text)).toThrow('...')
  })
})

describe('formatDuration', () => {
  it.each([
    [0, '0s'],
    [15_000_000, '15s'],
    [60_000_000, '1m0s'],
    [86_400_000_000, '24h0m0s'],
    [1_500_000, '1.5s'],
    [300_000, '300ms'],
    [2, '2µs'],
    [1_001, '1.001ms'],
    [61_000_001, '1m1.000001s'],
    [3_600_000_000, '1h0m0s'],
    [-1_500_000, '-1.5s'],
  ])('%d microseconds are formatted as %s', (micros, text) => {
    expect(formatDuration(micros)).toBe(text)
  })

  it('normaliseDuration keeps nanoseconds', () => {
    expect(normaliseDuration('2500ns')).toBe('2.5µs')
    expect(normaliseDuration('1ns')).toBe('1ns')
    expect(normaliseDuration('90m')).toBe('1h30m0s')
  })

  it('a formatted duration is parsed as the same duration, for every whole number of microseconds', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (micros) => {
        expect(parseDuration(formatDuration(micros))).toBe(micros)
      }),
    )
  })
})
