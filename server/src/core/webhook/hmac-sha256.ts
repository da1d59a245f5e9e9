/**
 * HMAC-SHA256 (RFC 2104) for many small bodies under few keys. `createHmac` prepares its key for each call,
 * which takes several times as long as the hash of a usual push: so the padded key is kept, and two calls of
 * `hash` do the rest.
 */
// biome-ignore lint/style/noRestrictedImports: a hash is a pure function and does no I/O.
import { createHmac, hash } from 'node:crypto'

export type HmacKey = Readonly<{
  bytes: Uint8Array
  /** The key with the inner padding. */
  inner: Uint8Array
  /** The key with the outer padding, and room for the inner hash. */
  outer: Uint8Array
}>

const blockBytes = 64
const digestBytes = 32
/** The one-shot hash needs a copy of the body. Above this size the copy costs more than it saves. */
const copiedBytesMax = 16 * 1_024
const prefixMax = 256

export function createHmacKey(bytes: Uint8Array): HmacKey {
  const block = new Uint8Array(blockBytes)
  block.set(bytes.length > blockBytes ? hash('sha256', bytes, 'buffer') : bytes)
  const outer = new Uint8Array(blockBytes + digestBytes)
  outer.set(block.map((byte) => byte ^ 0x5c))
  return { bytes, inner: block.map((byte) => byte ^ 0x36), outer }
}

/** Used again and again: an array of this size per push costs more than its hash. */
const text = new Uint8Array(blockBytes + prefixMax + copiedBytesMax)

/** The HMAC of `prefix` and then `body`, in base64. `prefix` has only ASCII characters. */
export function signSha256({ bytes, inner, outer }: HmacKey, prefix: string, body: Uint8Array): string {
  if (body.length > copiedBytesMax || prefix.length > prefixMax)
    return createHmac('sha256', bytes).update(prefix).update(body).digest('base64')
  const bodyAt = blockBytes + prefix.length
  text.set(inner)
  for (let at = 0; at < prefix.length; at++) text[blockBytes + at] = prefix.charCodeAt(at)
  text.set(body, bodyAt)
  outer.set(hash('sha256', text.subarray(0, bodyAt + body.length), 'buffer'), blockBytes)
  return hash('sha256', outer, 'base64')
}
