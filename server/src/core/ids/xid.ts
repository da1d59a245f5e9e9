/**
 * xids: 12 bytes (4 of seconds, 3 of the machine, 2 of the process, 3 of a counter, all big-endian) as 20
 * digits in lower-case base32hex. They sort by second; 96 bits leave 1 bit for the last digit, so it is `0`
 * or `g`.
 */
import { type Instant, usPerSecond } from '../time/instant.ts'

export type XidSource = Readonly<{
  /** 3 bytes that differ between machines. */
  machine: Uint8Array
  /** The id of the process. Only its lower 16 bits are used. */
  processId: number
  /** Random, so that a restart with the same process id does not repeat the ids of the same second. */
  counterStart: number
}>

export type XidParts = Readonly<{
  createdAt: Instant
  machine: Uint8Array
  processId: number
  counter: number
}>

const digits = '0123456789abcdefghijklmnopqrstuv'
/** The value of each digit, by its character code. */
const values = new Uint8Array(128)
for (let value = 0; value < digits.length; value++) values[digits.charCodeAt(value)] = value
const pattern = /^[0-9a-v]{19}[0g]$/
const headBytes = 9

/** Each call of the returned function gives a new id. Two ids of one source differ for 16,777,216 calls. */
export function createXidGenerator(source: XidSource): (now: Instant) => string {
  const bytes = new Uint8Array(headBytes)
  const view = new DataView(bytes.buffer)
  bytes.set(source.machine.subarray(0, 3), 4)
  view.setUint16(7, source.processId & 0xffff)
  let counter = source.counterStart & 0xffffff
  let second = -1
  /** The ids of one second share their first 14 digits and two bits of the next. */
  let head = { text: '', bits: 0 }
  return (now) => {
    counter = (counter + 1) & 0xffffff
    const nowSecond = Math.floor(now / usPerSecond) >>> 0
    if (nowSecond !== second) {
      second = nowSecond
      view.setUint32(0, second)
      head = encodeHead(bytes)
    }
    const rest = (head.bits << 24) | counter
    let text = head.text
    for (let shift = 21; shift > 0; shift -= 5) text += digits[(rest >>> shift) & 31]
    return text + digits[(rest & 1) << 4]
  }
}

export function isXid(text: string): boolean {
  return pattern.test(text)
}

/** Undefined: the text is not an xid. */
export function parseXid(text: string): XidParts | undefined {
  if (!isXid(text)) return undefined
  const bytes = new Uint8Array(12)
  let bits = 0
  let count = 0
  let at = 0
  for (let position = 0; position < text.length; position++) {
    bits = (bits << 5) | (values[text.charCodeAt(position)] as number)
    count += 5
    if (count >= 8 && at < bytes.length) {
      count -= 8
      bytes[at++] = bits >>> count
      bits &= (1 << count) - 1
    }
  }
  const view = new DataView(bytes.buffer)
  return {
    createdAt: view.getUint32(0) * usPerSecond,
    machine: bytes.slice(4, 7),
    processId: view.getUint16(7),
    counter: (view.getUint8(9) << 16) | view.getUint16(10),
  }
}

function encodeHead(bytes: Uint8Array): { text: string; bits: number } {
  let text = ''
  let bits = 0
  let count = 0
  for (const byte of bytes) {
    bits = (bits << 8) | byte
    count += 8
    while (count >= 5) {
      count -= 5
      text += digits[(bits >>> count) & 31]
    }
    bits &= (1 << count) - 1
  }
  return { text, bits }
}
