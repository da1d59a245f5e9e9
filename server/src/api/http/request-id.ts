import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { hostname } from 'node:os'
import { createXidGenerator } from '../../core/ids/xid.ts'
import { usPerMs } from '../../core/time/instant.ts'

// Bounded, and without characters that have a meaning in a log, a header or a page.
const safe = /^[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}$/

/** Uses the client's id if it is safe, so that its logs and ours can be correlated; otherwise creates one. */
export function chooseRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && safe.test(given) ? given : createXid()
}

const nextXid = createXidGenerator({
  machine: createHash('sha256').update(hostname()).digest().subarray(0, 3),
  processId: process.pid,
  counterStart: randomBytes(3).readUIntBE(0, 3),
})

/** Creates an xid: seconds, machine, process and counter in 20 characters that sort by time. */
export function createXid(nowMs: number = Date.now()): string {
  return nextXid(nowMs * usPerMs)
}
