/**
 * Verifies the signature of a push that Redrive sent, by the Standard Webhooks specification: HMAC-SHA256
 * over `webhook-id.webhook-timestamp.body`. It uses WebCrypto, so it works in Node, browsers and other
 * runtimes.
 */
import { decodeBase64 } from './http/base64.ts'

export type VerifyOptions = Readonly<{
  /** How far the time of the push may differ from `now`; default: 300 seconds. */
  toleranceSeconds?: number
  /** Default: the time of this machine. */
  now?: Date
}>

/** Why a push is not genuine. */
export type WebhookProblem = 'missing-header' | 'bad-timestamp' | 'too-old' | 'too-new' | 'wrong-signature'

/** The push was not sent by a holder of the secret, or not now: answer it with status 401. */
export class WebhookVerificationError extends Error {
  readonly problem: WebhookProblem

  constructor(problem: WebhookProblem, message: string) {
    super(message)
    this.name = 'WebhookVerificationError'
    this.problem = problem
  }
}

/** A `Headers` of fetch, or the headers of a request of Node. */
export type WebhookHeaders =
  | Readonly<{ get(name: string): string | null }>
  | Readonly<Record<string, string | readonly string[] | undefined>>

/** The push, as its signed headers identify it. */
export type VerifiedWebhook = Readonly<{
  /** The same for each attempt: use it to recognise a repeated push. */
  id: string
  sentAt: Date
}>

const secretPrefix = 'whsec_'
const toleranceSecondsDefault = 300
/** During a rotation there are two signatures. More are ignored, so that a caller cannot create work. */
const signaturesMax = 8

/**
 * Rejects with a `WebhookVerificationError` unless one of the secrets signed the push within the tolerance.
 * `body` must have the bytes as they were received: parsing and printing JSON again changes them. `secrets`
 * are texts `whsec_…`; give two while you rotate yours.
 */
export async function verifyWebhook(
  secrets: string | readonly string[],
  headers: WebhookHeaders,
  body: Uint8Array | string,
  options: VerifyOptions = {},
): Promise<VerifiedWebhook> {
  const keys = (typeof secrets === 'string' ? [secrets] : secrets).map(decodeSecret)
  if (keys.length === 0) throw new TypeError('verifyWebhook needs at least one secret')
  const id = readHeader(headers, 'webhook-id')
  const timestamp = readHeader(headers, 'webhook-timestamp')
  const signatures = readHeader(headers, 'webhook-signature')
  const sentAt = checkTimestamp(timestamp, options)
  const signed = joinSigned(`${id}.${timestamp}.`, body)
  const candidates = readSignatures(signatures)
  for (const secret of keys) {
    const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, [
      'verify',
    ])
    // The platform compares the signature in constant time.
    for (const candidate of candidates) {
      if (await crypto.subtle.verify('HMAC', key, candidate, signed)) return { id, sentAt }
    }
  }
  throw new WebhookVerificationError(
    'wrong-signature',
    'no signature in webhook-signature matches the body and the secret',
  )
}

function decodeSecret(secret: string): Uint8Array<ArrayBuffer> {
  const key = secret.startsWith(secretPrefix) ? decode(secret.slice(secretPrefix.length)) : undefined
  if (key === undefined || key.length === 0) {
    throw new TypeError(`a signing secret has the form ${secretPrefix}<base64>`)
  }
  return key
}

/** Undefined: not base64. Platforms differ: some throw, others skip what they do not know. */
function decode(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  try {
    return new Uint8Array(decodeBase64(text))
  } catch {
    return undefined
  }
}

function readHeader(headers: WebhookHeaders, name: string): string {
  const value = typeof headers.get === 'function' ? headers.get(name) : readPlainHeader(headers, name)
  if (typeof value === 'string' && value !== '') return value
  throw new WebhookVerificationError('missing-header', `the header ${name} is missing`)
}

function readPlainHeader(headers: WebhookHeaders, name: string): unknown {
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return Array.isArray(found) ? found[0] : found
}

function checkTimestamp(
  text: string,
  { toleranceSeconds = toleranceSecondsDefault, now }: VerifyOptions,
): Date {
  if (!/^\d{1,12}$/.test(text)) {
    throw new WebhookVerificationError('bad-timestamp', 'webhook-timestamp is not a number of seconds')
  }
  const sentAt = Number(text)
  const nowSeconds = (now?.getTime() ?? Date.now()) / 1_000
  if (sentAt < nowSeconds - toleranceSeconds) {
    throw new WebhookVerificationError('too-old', `the push is older than ${toleranceSeconds} seconds`)
  }
  if (sentAt > nowSeconds + toleranceSeconds) {
    throw new WebhookVerificationError(
      'too-new',
      `the push is more than ${toleranceSeconds} seconds in the future`,
    )
  }
  return new Date(sentAt * 1_000)
}

function readSignatures(text: string): readonly Uint8Array<ArrayBuffer>[] {
  return text
    .split(' ', signaturesMax)
    .filter((signature) => signature.startsWith('v1,'))
    .map((signature) => decode(signature.slice('v1,'.length)))
    .filter((signature) => signature !== undefined)
}

function joinSigned(start: string, body: Uint8Array | string): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder()
  const head = encoder.encode(start)
  const bytes = typeof body === 'string' ? encoder.encode(body) : body
  const joined = new Uint8Array(head.length + bytes.length)
  joined.set(head)
  joined.set(bytes, head.length)
  return joined
}
