import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { hostname } from 'node:os'

// Bounded, and nothing in it that a log, a header or a page could take for something else.
const sane = /^[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}$/

/** The client's own id when it is a sane one, so that its logs and ours can be matched; else a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && sane.test(given) ? given : newXid()
}

const alphabet = '0123456789abcdefghijklmnopqrstuv'
const machine = createHash('sha256').update(hostname()).digest().subarray(0, 3)
const buffer = Buffer.alloc(12)
machine.copy(buffer, 4)
buffer.writeUInt16BE(process.pid & 0xffff, 7)
let counter = randomBytes(3).readUIntBE(0, 3)

/** An xid: seconds, machine, process and counter as 20 characters that sort by time. */
export function newXid(nowMs: number = Date.now()): string {
  counter = (counter + 1) & 0xffffff
  buffer.writeUInt32BE(Math.floor(nowMs / 1_000) >>> 0, 0)
  buffer.writeUIntBE(counter, 9, 3)
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of buffer) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet[(value >>> bits) & 31]
    }
    value &= (1 << bits) - 1
  }
  return text + alphabet[(value << (5 - bits)) & 31]
}
