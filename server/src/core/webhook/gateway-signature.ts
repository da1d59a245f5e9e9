/** The signature of requests to the gateway: `X-Broker-Signature: t=<unix seconds>,v1=<lowercase hex>`. */
// biome-ignore lint/style/noRestrictedImports: an HMAC is a pure function and does no I/O.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Instant, usPerSecond } from '../time/instant.ts'
import { decodeBase64 } from './base64.ts'

/** `malformed`: also a missing header. */
export type GatewaySignatureProblem = 'malformed' | 'expired' | 'wrong'

export type SignedRequest = Readonly<{
  header: string | undefined
  body: Uint8Array
  secret: Uint8Array
  toleranceSeconds: number
  now: Instant
}>

/** Undefined: the signature is valid. The time is checked before the signature, as the contract says. */
export function checkGatewaySignature(request: SignedRequest): GatewaySignatureProblem | undefined {
  const parts = parseHeader(request.header)
  if (parts === undefined) return 'malformed'
  const ageSeconds = Math.abs(Math.floor(request.now / usPerSecond) - parts.seconds)
  if (ageSeconds > request.toleranceSeconds) return 'expired'
  const expected = computeDigest(request.secret, parts.time, request.body)
  return isEqual(expected, parts.digest) ? undefined : 'wrong'
}

export function createGatewaySignature(secret: Uint8Array, seconds: number, body: Uint8Array): string {
  return `t=${seconds},v1=${computeDigest(secret, String(seconds), body)}`
}

/** Undefined: the text is not base64, or empty. The server must not start with such a secret. */
export function parseGatewaySecret(text: string): Uint8Array | undefined {
  const bytes = decodeBase64(text)
  return bytes === undefined || bytes.length === 0 ? undefined : bytes
}

function computeDigest(secret: Uint8Array, time: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(`${time}.`).update(body).digest('hex')
}

type HeaderParts = Readonly<{ time: string; seconds: number; digest: string }>

/** Every part is `name=value`; unknown names are ignored, so that a later version can be added. */
function parseHeader(header: string | undefined): HeaderParts | undefined {
  if (header === undefined || header.length > headerMax) return undefined
  const values = new Map<string, string>()
  for (const part of header.split(',')) {
    const separator = part.indexOf('=')
    const name = part.slice(0, separator).trim()
    if (separator < 0 || values.has(name)) return undefined
    values.set(name, part.slice(separator + 1).trim())
  }
  const time = values.get('t')
  const digest = values.get('v1')
  if (time === undefined || digest === undefined || digest === '') return undefined
  return /^-?\d{1,15}$/.test(time) ? { time, seconds: Number(time), digest } : undefined
}

const headerMax = 1_024

/** Takes the same time wherever the first difference is. The length of a digest is not a secret. */
function isEqual(expected: string, given: string): boolean {
  const bytes = new TextEncoder().encode(given)
  return bytes.length === expected.length && timingSafeEqual(new TextEncoder().encode(expected), bytes)
}
