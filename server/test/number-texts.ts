/** Random numbers as JSON texts: close to each other, and outside of the range of a double. */
import fc from './fast-check.ts'

const digits = fc.oneof(
  fc.constantFrom('0', '1', '10', '417', '9007199254740992', '9007199254740993', '12000'),
  fc.bigInt({ min: 0n, max: 10n ** 25n }).map(String),
  fc.nat(999).map(String),
)
const exponent = fc.oneof(fc.integer({ min: -8, max: 8 }), fc.integer({ min: -420, max: 420 }))

export const aNumberText: fc.Arbitrary<string> = fc
  .tuple(fc.constantFrom('', '-'), digits, exponent, fc.boolean())
  .map(([sign, whole, power, isPlain]) => `${sign}${whole}${isPlain ? '' : `e${power}`}`)

/** The number times 10^1000 as an integer, so that equal numbers are equal here. */
export function scaled(text: string): bigint {
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const value =
    BigInt(whole.replace('-', '') + fraction) * 10n ** BigInt(1_000 + Number(power) - fraction.length)
  return text.startsWith('-') ? -value : value
}

/** Other texts of the same number: with the point moved, another exponent and additional zeros. */
export function rewritten(text: string): fc.Arbitrary<string> {
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const sign = text.startsWith('-') ? '-' : ''
  return fc
    .record({
      zerosBefore: fc.nat(3),
      zerosAfter: fc.nat(14),
      place: fc.nat(45),
      letter: fc.constantFrom('e', 'E'),
      plus: fc.constantFrom('', '+'),
      exponentZeros: fc.constantFrom('', '00'),
    })
    .map(({ zerosBefore, zerosAfter, place, letter, plus, exponentZeros }) => {
      const all = `${'0'.repeat(zerosBefore)}${whole}${fraction}${'0'.repeat(zerosAfter)}`
      const point = Math.min(Math.max(place, 1), all.length)
      const moved = Number(power) + zerosBefore + whole.length - point
      const before = all.slice(0, point).replace(/^0+(?=\d)/, '')
      const after = point < all.length ? `.${all.slice(point)}` : ''
      const written = `${letter}${moved < 0 ? '-' : plus}${exponentZeros}${Math.abs(moved)}`
      return `${sign}${before}${after}${moved === 0 ? '' : written}`
    })
}
