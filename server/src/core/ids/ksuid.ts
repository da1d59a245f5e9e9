/**
 * Item ids: KSUIDs whose byte order is the order of the queue.
 *
 * A KSUID is a 160-bit number in 27 base62 digits: 32 bits of seconds since 1400000000, then 128 bits that
 * other implementations fill at random. Here the upper part of the 128 bits is a counter that starts at the
 * microsecond within the second, and only the lowest eleven digits are random. So the ids of a partition
 * strictly increase, and two partitions do not create the same id.
 *
 * Each next id adds one to the digits before the random tail. This is done on the text, because converting a
 * 160-bit number to base62 for every item would cost more than storing the item.
 */
import { type Instant, usPerSecond } from '../time/instant.ts'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const digitValues = new Map([...digits].map((digit, value) => [digit, value]))
const epochSeconds = 1_400_000_000
const secondsMax = 0xffff_ffff

export const ksuidLength = 27
export const ksuidMin = '0'.repeat(ksuidLength)
export const ksuidMax = 'aWgEPTl1tmebfsQzFP4bxwgy80V'

/** The number of random digits at the end: 62 ** 11 is about 2 ** 65.5. The counter never changes them. */
const tailLength = 11
const headLength = ksuidLength - tailLength
const microsecondStep = 2n ** 128n / BigInt(usPerSecond)

/** Why a text is not a KSUID; undefined if it is one. */
export function findKsuidProblem(text: string): 'length' | 'range' | undefined {
  if (text.length !== ksuidLength) return 'length'
  for (const digit of text) if (!digitValues.has(digit)) return 'range'
  return text > ksuidMax ? 'range' : undefined
}

/**
 * Creates the next `count` ids of a partition whose newest id is `last` (undefined: it has none yet).
 *
 * All are greater than `last`, even if the clock stands still or is set back. `random` returns numbers in
 * [0, 1), like Math.random.
 */
export function createKsuids(
  last: string | undefined,
  now: Instant,
  count: number,
  random: () => number,
): string[] {
  const tail = createRandomDigits(tailLength, random)
  let head = encodeTime(now)
  if (last !== undefined && head <= last.slice(0, headLength)) head = addOne(last.slice(0, headLength))
  const ids = new Array<string>(count)
  for (let index = 0; index < count; index++) {
    ids[index] = head + tail
    head = addOne(head)
  }
  return ids
}

/** The second in which an id was created, as an instant. */
export function readKsuidTime(id: string): Instant {
  return (Number(decode(id) >> 128n) + epochSeconds) * usPerSecond
}

/** The first 16 of the 20 bytes as a UUID, for APIs whose contract requires UUIDs. */
export function convertToUuid(id: string): string {
  const bytes = new Uint8Array(uuidBytes)
  writeKsuidUuid(id, bytes, 0)
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

export const uuidBytes = 16

/**
 * Writes the bytes of the UUID of an id to `target`. The 160-bit number is held in parts of 24 bits, and four
 * digits are added at a time, so every product is exact in a number. This takes a hundredth of the time that
 * a bigint takes, which matters for millions of letters.
 */
export function writeKsuidUuid(id: string, target: Uint8Array, at: number): void {
  let [p0, p1, p2, p3, p4, p5, p6] = [0, 0, 0, 0, 0, 0, 0]
  for (let end = 3; end <= ksuidLength; end += 4) {
    let carry = 0
    for (let index = Math.max(end - 4, 0); index < end; index++) {
      carry = carry * 62 + (codeValues[id.charCodeAt(index) & 127] as number)
    }
    let whole = p0 * fourDigits + carry
    carry = Math.floor(whole / partSize)
    p0 = whole - carry * partSize
    whole = p1 * fourDigits + carry
    carry = Math.floor(whole / partSize)
    p1 = whole - carry * partSize
    whole = p2 * fourDigits + carry
    carry = Math.floor(whole / partSize)
    p2 = whole - carry * partSize
    whole = p3 * fourDigits + carry
    carry = Math.floor(whole / partSize)
    p3 = whole - carry * partSize
    whole = p4 * fourDigits + carry
    carry = Math.floor(whole / partSize)
    p4 = whole - carry * partSize
    whole = p5 * fourDigits + carry
    carry = Math.floor(whole / partSize)
    p5 = whole - carry * partSize
    p6 = p6 * fourDigits + carry
  }
  target[at] = p6 >> 8
  target[at + 1] = p6
  let to = at + 2
  for (const value of [p5, p4, p3, p2]) {
    target[to++] = value >> 16
    target[to++] = value >> 8
    target[to++] = value
  }
  target[to] = p1 >> 16
  target[to + 1] = p1 >> 8
}

const partSize = 2 ** 24
const fourDigits = 62 ** 4
const codeValues = Uint8Array.from(
  { length: 128 },
  (_, code) => digitValues.get(String.fromCharCode(code)) ?? 0,
)

/**
 * The first and the last id that have this UUID; undefined if the text is not a UUID. All ids between them
 * have it too, because ids sort like their bytes.
 */
export function findKsuidRange(uuid: string): Readonly<{ first: string; last: string }> | undefined {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(uuid)) return undefined
  const upper = BigInt(`0x${uuid.replaceAll('-', '')}`) << 32n
  return { first: encode(upper), last: encode(upper + 0xffff_ffffn) }
}

function encodeTime(now: Instant): string {
  const seconds = Math.floor(now / usPerSecond)
  const bounded = Math.min(Math.max(seconds - epochSeconds, 0), secondsMax - 1)
  const microseconds = bounded === seconds - epochSeconds ? now - seconds * usPerSecond : 0
  const value = (BigInt(bounded) << 128n) + BigInt(microseconds) * microsecondStep
  // The random tail may be smaller than the digits that are cut off here, so round up: otherwise the id could
  // be in the second before `now`.
  return addOne(encode(value).slice(0, headLength))
}

function addOne(head: string): string {
  for (let at = head.length - 1; at >= 0; at--) {
    const value = digitValues.get(head.charAt(at)) ?? 0
    if (value < 61) {
      return head.slice(0, at) + digits.charAt(value + 1) + '0'.repeat(head.length - 1 - at)
    }
  }
  throw new RangeError('no item id is left: the last id of the partition is the largest possible')
}

function createRandomDigits(count: number, random: () => number): string {
  let text = ''
  for (let index = 0; index < count; index++) text += digits.charAt(Math.floor(random() * 62))
  return text
}

function encode(value: bigint): string {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = digits.charAt(Number(rest % 62n)) + text
  return text.padStart(ksuidLength, '0')
}

function decode(id: string): bigint {
  let value = 0n
  for (const digit of id) value = value * 62n + BigInt(digitValues.get(digit) ?? 0)
  return value
}
