/**
 * Numbers as a JSON text writes them. A double rounds from 2^53 on and ends at 1e308; two texts are the same number
 * only if they are so digit by digit, wherever the point is and whatever the exponent.
 *
 * Only for texts that `JSON.parse` reads as a number: nothing is checked here. Digits that an exponent stands for are
 * never written out: 1e999999999 costs no more than 1e9.
 */

/** A number that is kept as it was written, also where it is stored or sent as JSON. */
export type JsonNumber = Readonly<{ number: string }>

export function isSameNumber(a: string, b: string): boolean {
  const [left, right] = [decimalOf(a), decimalOf(b)]
  if (left.digits !== right.digits) return false
  if (left.digits === '') return true
  return left.isNegative === right.isNegative && isSamePlace(left, right)
}

/** 0.`digits` times ten to the power of `point` plus `exponent`. */
export type Decimal = Readonly<{
  isNegative: boolean
  /** Without zeros at either end, so the same for the same number. None: it is zero. */
  digits: string
  point: number
  /** A whole number of any length. */
  exponent: string
}>

export function decimalOf(text: string): Decimal {
  const isNegative = text.startsWith('-')
  const end = text.search(/[eE]/)
  const mantissa = text.slice(isNegative ? 1 : 0, end < 0 ? text.length : end)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  const first = skipZeros(digits, 0)
  let last = digits.length
  while (last > first && digits.charCodeAt(last - 1) === zero) last--
  return {
    isNegative,
    digits: digits.slice(first, last),
    point: whole.length - first,
    exponent: end < 0 ? '0' : exponentOf(text.slice(end + 1)),
  }
}

const zero = 0x30

/** Without a plus and without zeros before it: its length tells how large it is. */
function exponentOf(text: string): string {
  const isSigned = text.startsWith('-') || text.startsWith('+')
  const digits = text.slice(skipZeros(text, isSigned ? 1 : 0))
  if (digits === '') return '0'
  return text.startsWith('-') ? `-${digits}` : digits
}

// By hand: a pattern for zeros at the end takes the square of their number where others follow.
function skipZeros(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) === zero) at++
  return at
}

/** From an exponent longer than this to a clearly shorter one is further than a point can be moved within a text. */
const exponentLengthMin = 15

function isSamePlace(a: Decimal, b: Decimal): boolean {
  const [shorter = 0, longer = 0] = [a.exponent.length, b.exponent.length].toSorted((x, y) => x - y)
  // One of the three may be the sign. Looked at first because a payload may have an exponent of millions of digits:
  // what is read below is about as short as the shorter of the two.
  if (longer > exponentLengthMin && longer - shorter >= 3) return false
  return BigInt(a.exponent) + BigInt(a.point) === BigInt(b.exponent) + BigInt(b.point)
}
