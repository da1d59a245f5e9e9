import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { writingsOf } from './letter-prefilter.ts'

/** The same number, its point moved and its exponent with it. */
function moved(value: number, by: number, zeros: number): string {
  const [whole = '', fraction = ''] = Math.abs(value).toString().split('.')
  const digits = `${whole}${fraction}${'0'.repeat(zeros)}`
  const point = Math.min(Math.max(whole.length + by, 1), digits.length)
  const exponent = whole.length - point
  const text = `${digits.slice(0, point)}${point < digits.length ? `.${digits.slice(point)}` : ''}`
  return `${value < 0 ? '-' : ''}${text.replace(/^0+(?=\d)/, '')}${exponent === 0 ? '' : `e${exponent}`}`
}

describe('the ways to write a number', () => {
  it('are few, and one of them stands in whatever stands for it', () => {
    const numbers = fc.oneof(
      fc.integer(),
      fc.integer({ min: 1, max: 99 }).map((n) => n * 1000),
      fc.integer().map((n) => n / 100),
    )
    fc.assert(
      fc.property(numbers, fc.integer({ min: -12, max: 12 }), fc.nat(3), (value, by, zeros) => {
        const writings = writingsOf(value)
        if (writings === undefined) return
        for (const text of [JSON.stringify(value), moved(value, by, zeros)]) {
          expect(Number(text), text).toBe(value)
          expect(
            writings.some((writing) => text.includes(writing)),
            `${text} of ${writings.join(' ')}`,
          ).toBe(true)
        }
      }),
      { numRuns: 5_000 },
    )
    expect(writingsOf(417)).toEqual(['417', '4.17', '41.7'])
    expect(writingsOf(0)).toBeUndefined()
    expect(writingsOf(1e21)).toBeUndefined()
  })
})
