import type { IncomingHttpHeaders } from 'node:http'
import { KnownError } from '../../errors.ts'
import { hostOf, isLoopback } from '../../ops/loopback.ts'

/**
 * The other half of protected mode. Without access control whoever reaches the port may do anything,
 * and a web page from anywhere can make a browser on this machine reach it. Two headers that a page
 * cannot forge give it away: `Host`, when a foreign name was pointed at 127.0.0.1 (DNS rebinding), and
 * `Origin`, when the page calls us by our right name.
 */
export function refuseNonLocal(headers: IncomingHttpHeaders): void {
  // An old client may send none. A browser always does.
  const { host, origin } = headers
  if (host !== undefined && !isLocal(host)) {
    throw new KnownError('HOST_REFUSED', `the Host header names ${quote(host)}, which is not this machine`)
  }
  if (origin !== undefined && !isLocal(origin.replace(/^https?:\/\//, ''))) {
    throw new KnownError('HOST_REFUSED', `the request comes from a web page of ${quote(origin)}`)
  }
}

// Nearly every request on a connection has the same few values.
const known = new Map<string, boolean>()

function isLocal(authority: string): boolean {
  const remembered = known.get(authority)
  if (remembered !== undefined) return remembered
  const host = hostOf(authority)
  const isOurs = host !== null && isLoopback(host)
  if (known.size < 100) known.set(authority, isOurs)
  return isOurs
}

function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}
