/**
 * Durations as text: `300ms`, `1.5s`, `24h0m0s`. The contract of the Queue API fixes the grammar, the error
 * messages and the normalised form.
 *
 * Values are whole microseconds: both stores keep microseconds, and a number holds 285 years of them exactly.
 * Only `parseFineDuration` and `normaliseDuration` keep nanoseconds, because the contract returns `2.5µs` for
 * `2.5µs`.
 */

/** Returns whole microseconds and cuts off nanoseconds. Throws an Error with the message of the contract. */
export function parseDuration(text: string): number {
  return Number(parseNanos(text) / 1_000n)
}

/**
 * Like `parseDuration`, with nanoseconds as a fraction, so that the given duration can be shown unchanged.
 */
export function parseFineDuration(text: string): number {
  const nanos = parseNanos(text)
  return Number(nanos / 1_000n) + Number(nanos % 1_000n) / 1_000
}

/** The normalised form: `0s`, `1m0s`, `24h0m0s`, `1.5s`, `300ms`. */
export function formatDuration(micros: number): string {
  const whole = Math.trunc(micros)
  // Convert the whole part as a bigint: a number cannot hold the nanoseconds of a long duration exactly.
  return formatNanos(BigInt(whole) * 1_000n + BigInt(Math.round((micros - whole) * 1_000)))
}

/** Normalises a duration without losing nanoseconds. Throws like `parseDuration`. */
export function normaliseDuration(text: string): string {
  return formatNanos(parseNanos(text))
}

const unitNanos = new Map<string, bigint>([
  ['ns', 1n],
  ['us', 1_000n],
  ['\u00b5s', 1_000n], // the micro sign
  ['\u03bcs', 1_000n], // the Greek letter mu, which looks the same
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
])

/** The largest signed 64-bit number of nanoseconds: about 292 years. */
const nanosMax = 2n ** 63n - 1n

/** One number with its unit, such as `1.5h`. */
const term = /(\d*)(\.(\d*))?([^\d.]*)/y

/** Longer texts are refused unread: converting a million digits takes seconds. */
const textMax = 64

function parseNanos(text: string): bigint {
  if (text.length > textMax)
    throw new Error(`time: invalid duration ${quote(`${text.slice(0, textMax)}...`)}`)
  const isNegative = text.startsWith('-')
  const unsigned = isNegative || text.startsWith('+') ? text.slice(1) : text
  if (unsigned === '0') return 0n
  if (unsigned === '') throw new Error(`time: invalid duration ${quote(text)}`)

  let nanos = 0n
  term.lastIndex = 0
  while (term.lastIndex < unsigned.length) {
    const [, whole = '', , fraction = '', unit = ''] = term.exec(unsigned) ?? []
    nanos += parseTerm(whole, fraction, unit, text)
    if (nanos > nanosMax) throw new Error(`time: invalid duration ${quote(text)}`)
  }
  return isNegative ? -nanos : nanos
}

/** `text`: the whole duration, for the error message. */
function parseTerm(whole: string, fraction: string, unit: string, text: string): bigint {
  if (whole === '' && fraction === '') throw new Error(`time: invalid duration ${quote(text)}`)
  if (unit === '') throw new Error(`time: missing unit in duration ${quote(text)}`)
  const scale = unitNanos.get(unit)
  if (scale === undefined) throw new Error(`time: unknown unit ${quote(unit)} in duration ${quote(text)}`)
  // An hour has 13 digits of nanoseconds, so digits after the 18th cannot change the result.
  const digits = fraction.slice(0, 18)
  const fractionNanos = digits === '' ? 0n : (BigInt(digits) * scale) / 10n ** BigInt(digits.length)
  return BigInt(whole) * scale + fractionNanos
}

function formatNanos(nanos: bigint): string {
  if (nanos === 0n) return '0s'
  if (nanos < 0n) return `-${formatNanos(-nanos)}`
  if (nanos < 1_000n) return `${nanos}ns`
  if (nanos < 1_000_000n) return `${formatDecimal(nanos, 3)}µs`
  if (nanos < 1_000_000_000n) return `${formatDecimal(nanos, 6)}ms`

  const minutes = nanos / 60_000_000_000n
  const seconds = `${formatDecimal(nanos % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return seconds
  const hours = minutes / 60n
  return hours === 0n ? `${minutes}m${seconds}` : `${hours}h${minutes % 60n}m${seconds}`
}

/** Formats `value / 10^places` without trailing zeros. */
function formatDecimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  const whole = digits.slice(0, -places)
  return fraction === '' ? whole : `${whole}.${fraction}`
}

/** Quotes like the contract: characters outside printable ASCII become the bytes of their UTF-8 encoding. */
function quote(text: string): string {
  let quoted = ''
  for (const char of text) {
    if (char === '"' || char === '\\') quoted += `\\${char}`
    else if (char >= ' ' && char < '\u0080') quoted += char
    else
      for (const byte of new TextEncoder().encode(char)) quoted += `\\x${byte.toString(16).padStart(2, '0')}`
  }
  return `"${quoted}"`
}
