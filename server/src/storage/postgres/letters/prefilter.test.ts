import { describe, expect, it } from 'vitest'
import fc from '../../../../test/fast-check.ts'
import { aNumberText, rewritten } from '../../../../test/number-texts.ts'
import { isSameNumber } from '../../../core/text/json-number.ts'
import { listWritings } from './prefilter.ts'

describe('the ways to write a number', () => {
  it('every text of a number contains one of the few writings of that number', () => {
    const short = fc
      .tuple(fc.constantFrom('', '-'), fc.nat(), fc.integer({ min: -12, max: 6 }))
      .map(([sign, digits, power]) => `${sign}${digits}e${power}`)
    const pairs = fc
      .oneof(aNumberText, short)
      .chain((number) => fc.tuple(fc.constant(number), fc.oneof(fc.constant(number), rewritten(number))))
    let known = 0
    fc.assert(
      fc.property(pairs, ([wanted, text]) => {
        expect(isSameNumber(wanted, text), `${wanted} and ${text}`).toBe(true)
        const writings = listWritings(wanted)
        if (writings === undefined) return
        known++
        expect(writings.length).toBeLessThan(40)
        expect(
          writings.some((writing) => text.includes(writing)),
          `${text} of ${writings.join(' ')}`,
        ).toBe(true)
      }),
      { numRuns: 10_000 },
    )
    expect(known).toBeGreaterThan(3_000)
  })

  it('equal numbers have the same writings', () => {
    for (const number of ['417', '417.00', '-4.17e2', '4170E-1']) {
      expect(listWritings(number), number).toEqual(['417', '4.17', '41.7'])
    }
    expect(listWritings('20e1')).toEqual(['200', '2.', '2e', '2E', '20.', '20e', '20E'])
  })

  it.each(['0', '-0.0e7', '1e21', '1e400', '1e999999999', `1e${'9'.repeat(999)}`, '9007199254740993'])(
    'a number that can be written in too many ways has no list of writings: %s',
    (number) => {
      expect(listWritings(number)).toBeUndefined()
    },
  )
})
