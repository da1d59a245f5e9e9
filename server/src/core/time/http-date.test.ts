import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { second } from '../../../test/make.ts'
import { formatHttpDate, parseHttpDate, toWholeSecond } from './http-date.ts'

const example = Date.UTC(1994, 10, 6, 8, 49, 37) * 1_000

describe('HTTP dates', () => {
  it('an HTTP date has whole seconds in GMT', () => {
    expect(formatHttpDate(example)).toBe('Sun, 06 Nov 1994 08:49:37 GMT')
    expect(formatHttpDate(example + second - 1)).toBe('Sun, 06 Nov 1994 08:49:37 GMT')
  })

  it('the three forms of RFC 9110 are the same instant', () => {
    expect(parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT')).toBe(example)
    expect(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT')).toBe(example)
    expect(parseHttpDate('Sun Nov  6 08:49:37 1994')).toBe(example)
  })

  it('a formatted date is parsed as the whole second of its instant', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(2200, 0) * 1_000 }), (instant) => {
        expect(parseHttpDate(formatHttpDate(instant))).toBe(toWholeSecond(instant))
      }),
    )
  })

  it.each([
    ['', 'an empty text'],
    ['yesterday', 'a word'],
    ['2026-11-18T12:00:00Z', 'an ISO time'],
    ['Sun, 30 Feb 2026 08:49:37 GMT', 'a day that does not exist'],
    ['Sun, 06 Nov 1994 24:49:37 GMT', 'an hour that does not exist'],
    ['Sun, 06 Xyz 1994 08:49:37 GMT', 'an unknown month'],
    ['Sun, 06 Nov 1994 08:49:37 CET', 'another zone'],
  ])('%j is refused: %s', (text) => {
    expect(parseHttpDate(text)).toBeUndefined()
  })
})
