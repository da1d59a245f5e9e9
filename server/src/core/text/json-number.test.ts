import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { aNumberText, rewritten, scaled } from '../../../test/number-texts.ts'
import { isSameNumber } from './json-number.ts'

describe('isSameNumber', () => {
  it.each([
    ['417', '417.0'],
    ['417', '4.17e2'],
    ['417', '4170e-1'],
    ['417', '0.000417E+006'],
    ['-0', '0'],
    ['0', '0.00e5'],
    ['-0e999999999999999999999', '0e-1'],
    ['9007199254740993', '9007199254740993.000'],
    ['1e400', '10e399'],
    ['1e999999999', '0.1e1000000000'],
    ['1e99999999999999999999', '0.01e100000000000000000001'],
    ['1e-99999999999999999999', '100e-100000000000000000001'],
    ['-5e-324', '-0.5e-323'],
  ])('%s and %s are the same number', (a, b) => {
    expect([isSameNumber(a, b), isSameNumber(b, a)]).toEqual([true, true])
  })

  it.each([
    ['9007199254740992', '9007199254740993'],
    ['0.1', '0.1000000000000000055511151231257827'],
    ['417', '417.00000000000000000001'],
    ['1', '-1'],
    ['1e400', '1e401'],
    ['1e400', '-1e400'],
    ['1e-400', '0'],
    ['1e-400', '1e400'],
    ['1e999999999', '1e999999998'],
    ['1e99999999999999999999', '1e99999999999999999998'],
    ['1e99999999999999999999', '1e-99999999999999999999'],
    ['1e99999999999999999999', '1'],
    ['12', '1.02e1'],
  ])('%s and %s are different numbers', (a, b) => {
    expect([isSameNumber(a, b), isSameNumber(b, a)]).toEqual([false, false])
  })

  it('numbers are the same exactly if all their digits are, for random texts', () => {
    const near = fc.oneof(
      aNumberText.chain((text) => fc.tuple(fc.constant(text), rewritten(text))),
      fc.tuple(aNumberText, aNumberText),
    )
    fc.assert(
      fc.property(near, ([a, b]) => {
        for (const text of [a, b]) expect(JSON.parse(text), text).toBeTypeOf('number')
        expect(isSameNumber(a, b)).toBe(scaled(a) === scaled(b))
      }),
      { numRuns: 5_000 },
    )
  })

  // Quadratic time would exceed the timeout of the test.
  it('the time to compare two numbers is linear in their length', () => {
    const many = 4_000_000
    const zeros = '0'.repeat(many)
    const nines = '9'.repeat(many)
    expect(isSameNumber(`1.${zeros}1${zeros}`, `0.1${zeros}1e1`)).toBe(true)
    expect(isSameNumber(`1e${zeros}5`, `1${zeros}e-${many - 5}`)).toBe(true)
    expect(isSameNumber(`1e${nines}`, '1e999999999')).toBe(false)
    expect(isSameNumber(`1e-${nines}`, `1e${'9'.repeat(4_000)}`)).toBe(false)
  })
})
