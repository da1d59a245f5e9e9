/**
 * Compares numbers in JSON by their text. A double is exact only up to 2^53 and ends at 1e308, so two texts
 * are compared digit by digit, independent of the position of the point and of the exponent.
 *
 * Only for texts that `JSON.parse` accepts as a number: nothing is checked here. Exponents are never
 * expanded: 1e999999999 costs no more than 1e9.
 */

/** A number as its text in JSON, so that storing and sending it does not change a digit. */
export type JsonNumber = Readonly<{ number: string }>

export function isSameNumber(a: string, b: string): boolean {
  const [left, right] = [parseDecimal(a), parseDecimal(b)]
  if (left.digits !== right.digits) return false
  if (left.digits === '') return true
  return left.isNegative === right.isNegative && isSameMagnitude(left, right)
}

/** The number 0.`digits` × 10^(`point` + `exponent`). */
export type Decimal = Readonly<{
  isNegative: boolean
  /** Without leading and trailing zeros, so equal for equal numbers. Empty: the number is zero. */
  digits: string
  point: number
  /** An integer of any length. */
  exponent: string
}>

export function parseDecimal(text: string): Decimal {
  const isNegative = text.startsWith('-')
  const end = text.search(/[eE]/)
  const mantissa = text.slice(isNegative ? 1 : 0, end < 0 ? text.length : end)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  const first = skipZeros(digits, 0)
  // No regular expression: /0+$/ takes quadratic time on long runs of zeros before other digits.
  let last = digits.length
  while (last > first && digits.charCodeAt(last - 1) === zero) last--
  return {
    isNegative,
    digits: digits.slice(first, last),
    point: whole.length - first,
    exponent: end < 0 ? '0' : normaliseExponent(text.slice(end + 1)),
  }
}

const zero = 0x30

/** Removes a plus sign and leading zeros, so that the length of the text shows the size of the number. */
function normaliseExponent(text: string): string {
  const isSigned = text.startsWith('-') || text.startsWith('+')
  const digits = text.slice(skipZeros(text, isSigned ? 1 : 0))
  if (digits === '') return '0'
  return text.startsWith('-') ? `-${digits}` : digits
}

function skipZeros(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) === zero) at++
  return at
}

/**
 * The difference between an exponent longer than this and one that is at least two digits shorter exceeds the
 * length of any string, so no position of the point makes up for it.
 */
const longExponentLength = 15

/** Whether both numbers have the same power of ten. */
function isSameMagnitude(a: Decimal, b: Decimal): boolean {
  const [shorter = 0, longer = 0] = [a.exponent.length, b.exponent.length].toSorted((x, y) => x - y)
  // Compare the lengths first: a payload may have an exponent of millions of digits, and parsing two of them
  // is slow. A difference of 3 is at least two digits, because one character may be the sign.
  if (longer > longExponentLength && longer - shorter >= 3) return false
  return BigInt(a.exponent) + BigInt(a.point) === BigInt(b.exponent) + BigInt(b.point)
}
