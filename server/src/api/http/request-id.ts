import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { hostname } from 'node:os'

// Bounded, and without characters that have a meaning in a log, a header or a page.
const safe = /^[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}$/

/** Uses the client's id if it is safe, so that its logs and ours can be correlated; otherwise creates one. */
export function chooseRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && safe.test(given) ? given : createXid()
}

const alphabet = '0123456789abcdefghijklmnopqrstuv'
const machine = createHash('sha256').update(hostname()).digest().subarray(0, 3)
const bytes = Buffer.alloc(9)
machine.copy(bytes, 4)
bytes.writeUInt16BE(process.pid & 0xffff, 7)
let counter = randomBytes(3).readUIntBE(0, 3)
/** All ids of one second share these characters, and the first two bits of the next character. */
let prefix = { second: -1, text: '', bits: 0 }

/** Creates an xid: seconds, machine, process and counter in 20 characters that sort by time. */
export function createXid(nowMs: number = Date.now()): string {
  counter = (counter + 1) & 0xffffff
  const second = Math.floor(nowMs / 1_000) >>> 0
  if (second !== prefix.second) prefix = createPrefix(second)
  const rest = (prefix.bits << 24) | counter
  let text = prefix.text
  for (let shift = 21; shift > 0; shift -= 5) text += alphabet[(rest >>> shift) & 31]
  return text + alphabet[(rest & 1) << 4]
}

function createPrefix(second: number): typeof prefix {
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
