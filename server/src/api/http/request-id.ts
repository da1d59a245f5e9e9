import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { hostname } from 'node:os'

// Bounded, and nothing in it that a log, a header or a page could take for something else.
const sane = /^[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}$/

/** The client's own id when it is a sane one, so that its logs and ours can be matched; else a new one. */
export function chooseRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && sane.test(given) ? given : createXid()
}

const alphabet = '0123456789abcdefghijklmnopqrstuv'
const machine = createHash('sha256').update(hostname()).digest().subarray(0, 3)
const bytes = Buffer.alloc(9)
machine.copy(bytes, 4)
bytes.writeUInt16BE(process.pid & 0xffff, 7)
let counter = randomBytes(3).readUIntBE(0, 3)
/** All ids of a second begin alike: with these characters, and two bits of the next. */
let begun = { second: -1, text: '', bits: 0 }

/** An xid: seconds, machine, process and counter as 20 characters that sort by time. */
export function createXid(nowMs: number = Date.now()): string {
  counter = (counter + 1) & 0xffffff
  const second = Math.floor(nowMs / 1_000) >>> 0
  if (second !== begun.second) begun = begin(second)
  const rest = (begun.bits << 24) | counter
  let text = begun.text
  for (let shift = 21; shift > 0; shift -= 5) text += alphabet[(rest >>> shift) & 31]
  return text + alphabet[(rest & 1) << 4]
}

function begin(second: number): typeof begun {
  bytes.writeUInt32BE(second, 0)
  let text = ''
  let count = 0
  let bits = 0
  for (const byte of bytes) {
    bits = (bits << 8) | byte
    count += 8
    while (count >= 5) {
      count -= 5
      text += alphabet[(bits >>> count) & 31]
    }
    bits &= (1 << count) - 1
  }
  return { second, text, bits }
}
