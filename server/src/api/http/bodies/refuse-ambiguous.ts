import type { IncomingMessage } from 'node:http'
import { KnownError } from '../../../errors.ts'

/**
 * Refuses requests that a proxy in front of this server could understand in another way, and bodies in an
 * encoding that this server would store as they are.
 */
export function refuseAmbiguous({
  headers,
  rawHeaders,
}: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): void {
  if (countHosts(rawHeaders) > 1) throw new KnownError('BAD_REQUEST', 'the request has two Host headers')
  const transferEncoding = headers['transfer-encoding']
  if (transferEncoding !== undefined && transferEncoding.toLowerCase() !== 'chunked') {
    throw new KnownError(
      'BAD_REQUEST',
      `Transfer-Encoding ${quote(transferEncoding)} is not supported; use chunked, or send a Content-Length`,
    )
  }
  const contentEncoding = headers['content-encoding']
  if (contentEncoding !== undefined && contentEncoding.toLowerCase() !== 'identity') {
    throw new KnownError(
      'UNSUPPORTED_MEDIA_TYPE',
      `Content-Encoding ${quote(contentEncoding)} is not supported; send the body without compression`,
    )
  }
}

/** Node keeps only the first Host header in `headers`. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count
}

function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}
