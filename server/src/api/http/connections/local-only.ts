import type { IncomingHttpHeaders } from 'node:http'
import { KnownError } from '../../../errors.ts'
import { isLoopback, parseHost } from '../../../ops/loopback.ts'

/**
 * Part of protected mode: refuses requests that a foreign web page makes through a browser on this machine.
 * Without access control, every client that reaches the port has all permissions. A page cannot forge two
 * headers: `Host` names the foreign host if its name was pointed at 127.0.0.1 (DNS rebinding), and `Origin`
 * names the foreign page if it calls this server by its own name.
 */
export function refuseNonLocal(headers: IncomingHttpHeaders): void {
  // An old client may omit Host; a browser always sends it.
  const { host, origin } = headers
  if (host !== undefined && !isLocal(host)) {
    throw new KnownError('HOST_REFUSED', `the Host header names ${quote(host)}, which is not this machine`)
  }
  if (origin !== undefined && !isLocal(origin.replace(/^https?:\/\//, ''))) {
    throw new KnownError(
      'HOST_REFUSED',
      `the Origin header names ${quote(origin)}, which is not this machine`,
    )
  }
}

// Caches the result: almost all requests have the same few values.
const known = new Map<string, boolean>()

function isLocal(authority: string): boolean {
  const remembered = known.get(authority)
  if (remembered !== undefined) return remembered
  const host = parseHost(authority)
  const isOurs = host !== null && isLoopback(host)
  if (known.size < 100) known.set(authority, isOurs)
  return isOurs
}

function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}
