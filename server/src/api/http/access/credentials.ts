import type { FastifyRequest } from 'fastify'
import type { Credential } from '../../../access/access.ts'
import { KnownError } from '../../../errors.ts'

const none: Credential = { kind: 'none' }

/** Longer texts are no credential. Tokens of identity providers with many claims have a few kilobytes. */
const credentialBytesMax = 12_000

/**
 * Reads the credential of a request: `Authorization: Bearer <key>`, `Authorization: ApiKey <key>` or
 * `X-API-Key`, in this order. Throws CREDENTIAL_REFUSED for another form of `Authorization`.
 */
export function readCredential({ headers }: Pick<FastifyRequest, 'headers'>): Credential {
  const { authorization } = headers
  if (authorization !== undefined) return { kind: 'bearer', text: readAuthorization(authorization) }
  const key = headers['x-api-key']
  if (typeof key === 'string') return { kind: 'bearer', text: limitCredential(key.trim()) }
  return none
}

export function readAuthorization(header: string): string {
  const [, text] = /^(?:bearer|apikey) +(\S+) *$/i.exec(header) ?? []
  if (text === undefined) throw new KnownError('CREDENTIAL_REFUSED', 'invalid authorization header format')
  return limitCredential(text)
}

/** Throws CREDENTIAL_REFUSED for a text that is too long to be a credential. */
export function limitCredential(text: string): string {
  if (text.length > credentialBytesMax) throw new KnownError('CREDENTIAL_REFUSED', 'api key is invalid')
  return text
}
