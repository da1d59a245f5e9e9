/**
 * Signatures of pushes by the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`. Each
 * consumer has a secret. After a rotation the previous secret signs too, until the overlap ends, so that a
 * receiver can change its secret at any time in between.
 */
import { addDuration, type Instant, usPerSecond } from '../time/instant.ts'
import { decodeBase64, encodeBase64 } from './base64.ts'
import { createHmacKey, type HmacKey, signSha256 } from './hmac-sha256.ts'

/** The headers of a Standard Webhooks signature. */
export type SignatureHeaders = Readonly<{
  'webhook-id': string
  'webhook-timestamp': string
  'webhook-signature': string
}>

/** The secrets of a consumer, as text `whsec_<base64>`. */
export type SigningSecrets = Readonly<{
  current: string
  /** The secret before the last rotation, until it ends. */
  previous: Readonly<{ secret: string; validUntil: Instant }> | null
}>

export type SignedMessage = Readonly<{
  /**
   * The same for every attempt of a job, and without a full stop, so that the signed text has one reading:
   * use the id of the job.
   */
  id: string
  /** The time of the attempt: receivers refuse old ones. */
  sentAt: Instant
  body: Uint8Array
}>

export const rotationOverlapUs = 24 * 3_600 * usPerSecond

const prefix = 'whsec_'
const secretBytesMin = 24
const secretBytesMax = 64

/** `random`: 24 to 64 bytes of a secure source. */
export function createSigningSecret(random: Uint8Array): string {
  if (random.length < secretBytesMin || random.length > secretBytesMax) {
    throw new RangeError(
      `a signing secret has ${secretBytesMin} to ${secretBytesMax} bytes, not ${random.length}`,
    )
  }
  return prefix + encodeBase64(random)
}

/** Why a text is not a signing secret; undefined: it is one. */
export function findSigningSecretProblem(text: string): string | undefined {
  if (!text.startsWith(prefix)) return `a signing secret starts with "${prefix}"`
  const key = decodeBase64(text.slice(prefix.length))
  if (key === undefined) return `a signing secret is base64 after "${prefix}"`
  if (key.length < secretBytesMin || key.length > secretBytesMax) {
    return `a signing secret has ${secretBytesMin} to ${secretBytesMax} bytes, not ${key.length}`
  }
  return undefined
}

/** The secret that was current signs until the overlap ends. A secret before that one ends at once. */
export function rotateSigningSecret(
  secrets: SigningSecrets | null,
  next: string,
  now: Instant,
  overlapUs: number = rotationOverlapUs,
): SigningSecrets {
  if (secrets === null || overlapUs <= 0) return { current: next, previous: null }
  if (secrets.current === next) return secrets
  return { current: next, previous: { secret: secrets.current, validUntil: addDuration(now, overlapUs) } }
}

/** The secrets that sign now, the current one first. */
export function listSigningSecrets(secrets: SigningSecrets, now: Instant): readonly string[] {
  const { current, previous } = secrets
  return previous !== null && now < previous.validUntil ? [current, previous.secret] : [current]
}

/** Throws an Error if a secret is malformed: check secrets when they are configured. */
export function signPush(secrets: SigningSecrets, message: SignedMessage): SignatureHeaders {
  const timestamp = String(Math.floor(message.sentAt / usPerSecond))
  const signatures = listSigningSecrets(secrets, message.sentAt).map((secret) =>
    sign(secret, message.id, timestamp, message.body),
  )
  return {
    'webhook-id': message.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}

function sign(secret: string, id: string, timestamp: string, body: Uint8Array): string {
  return `v1,${signSha256(getKey(secret), `${id}.${timestamp}.`, body)}`
}

/** The keys of secrets that signed lately: decoding one takes as long as signing. */
const keys = new Map<string, HmacKey>()
const keysMax = 1_000

function getKey(secret: string): HmacKey {
  const known = keys.get(secret)
  if (known !== undefined) return known
  const bytes = decodeBase64(secret.slice(prefix.length))
  if (!secret.startsWith(prefix) || bytes === undefined) {
    throw new Error(findSigningSecretProblem(secret) ?? 'the signing secret is malformed')
  }
  const key = createHmacKey(bytes)
  if (keys.size >= keysMax) keys.clear()
  keys.set(secret, key)
  return key
}
