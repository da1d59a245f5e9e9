import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from 'jose'
import type { Identity } from '../core/access/identity.ts'
import { systemNamespace } from '../core/items/queue.ts'
import { type Clock, type Instant, usPerMs, usPerSecond } from '../core/time/instant.ts'
import { KnownError } from '../errors.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { hashSecret } from './api-key-text.ts'
import type { EpochWatch } from './epoch-watch.ts'
import { findOne } from './find-records.ts'
import { refused } from './identities.ts'

/** The settings of an identity provider (OpenID Connect). */
export type IdentityProvider = Readonly<{
  issuer: string
  audience: string
  /** Undefined: found in `<issuer>/.well-known/openid-configuration`. */
  jwksUrl: string | undefined
  algorithms: readonly string[]
  clockToleranceMs: number
  /** The claim with the names of roles; a path such as `realm_access.roles` for nested claims. */
  rolesClaim: string
  nameClaim: string
}>

/** Verifies tokens of an identity provider. */
export interface Tokens {
  /** Whether the text has the form of a token, and so is no API key. */
  hasForm(text: string): boolean
  isKnown(text: string): boolean
  /**
   * Rejects with CREDENTIAL_REFUSED if the token is not valid, and with IDENTITY_PROVIDER_UNAVAILABLE if the
   * keys of the provider cannot be read.
   */
  identify(text: string): Promise<Identity>
}

type Parts = Readonly<{
  provider: IdentityProvider
  storage: Pick<StoreReads, 'listAccess' | 'listQueues' | 'readAccessState'>
  watch: EpochWatch
  clock: Clock
}>
type Entry = Readonly<{ identity: Identity; epoch: number; until: Instant }>

/** A token whose key the provider removed is accepted for this long at most. */
const rememberedUs = 60 * usPerSecond
const entriesMax = 10_000
const rolesMax = 100
const requestMsMax = 5_000
const jwksMs = 300_000

export function createTokens({ provider, storage, watch, clock }: Parts): Tokens {
  const entries = new Map<string, Entry>()
  const readKeys = createKeyReader(provider)

  const verify = async (text: string): Promise<JWTPayload> => {
    try {
      const { payload } = await jwtVerify(text, await readKeys(), {
        issuer: provider.issuer,
        audience: provider.audience,
        algorithms: [...provider.algorithms],
        clockTolerance: provider.clockToleranceMs / 1_000,
        currentDate: new Date(clock.now() / usPerMs),
        requiredClaims: ['exp', 'sub'],
      })
      return payload
    } catch (error) {
      throw toRefusal(error)
    }
  }
  return {
    hasForm: (text) => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text),
    isKnown: (text) => entries.has(hashSecret(text)),
    identify: async (text) => {
      const hash = hashSecret(text)
      if (!watch.isTrusted()) await watch.check()
      const entry = entries.get(hash)
      if (entry !== undefined && entry.epoch === watch.epoch && entry.until > clock.now())
        return entry.identity
      const payload = await verify(text)
      const { epoch } = await storage.readAccessState()
      const identity: Identity = {
        userId: `oidc:${payload.sub ?? ''}`,
        name: readText(payload, provider.nameClaim) ?? payload.sub ?? '',
        keyPrefix: null,
        scope: null,
        grants: await readGrants(storage, readTexts(payload, provider.rolesClaim)),
      }
      const expiresAt = (payload.exp ?? 0) * usPerSecond
      entries.delete(hash)
      entries.set(hash, { identity, epoch, until: Math.min(expiresAt, clock.now() + rememberedUs) })
      const oldest = entries.keys().next().value
      if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest)
      return identity
    },
  }
}

type Keys = ReturnType<typeof createRemoteJWKSet>

/** The provider is asked when the first token arrives, so the server starts without it. */
function createKeyReader({ issuer, jwksUrl }: IdentityProvider): () => Promise<Keys> {
  let keys: Promise<Keys> | undefined
  const create = async (): Promise<Keys> => {
    const url = jwksUrl ?? (await discover(issuer))
    return createRemoteJWKSet(new URL(url), {
      timeoutDuration: requestMsMax,
      cacheMaxAge: jwksMs,
      cooldownDuration: 1_000,
    })
  }
  return () => {
    keys ??= create().catch((error: unknown) => {
      keys = undefined
      throw error
    })
    return keys
  }
}

async function discover(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(requestMsMax), redirect: 'error' })
    const { jwks_uri: found } = (await response.json()) as { jwks_uri?: unknown }
    if (response.ok && typeof found === 'string') return found
  } catch (error) {
    throw unavailable(error)
  }
  throw unavailable(new Error(`${url} has no jwks_uri`))
}

function unavailable(cause: unknown): KnownError {
  return new KnownError(
    'IDENTITY_PROVIDER_UNAVAILABLE',
    'the keys of the identity provider cannot be read',
    cause,
  )
}

/** Only these reasons are the fault of the token. Everything else is a failure to reach the provider. */
function toRefusal(error: unknown): unknown {
  if (error instanceof KnownError) return error
  if (error instanceof errors.JWTExpired) return refused('the token has expired')
  if (error instanceof errors.JWTClaimValidationFailed) {
    return refused(`the token has another ${error.claim} than this server accepts`)
  }
  const isFault =
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JOSEAlgNotAllowed ||
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  return isFault ? refused('the token is invalid') : unavailable(error)
}

/** `Viewer` is a role for all namespaces, `shop:Viewer` one for the namespace `shop`. Others are ignored. */
async function readGrants(storage: Parts['storage'], names: readonly string[]): Promise<Identity['grants']> {
  const grants: Identity['grants'][number][] = []
  for (const text of names.slice(0, rolesMax)) {
    const [name = '', namespace = systemNamespace, ...rest] = text.split(':').toReversed()
    if (rest.length > 0 || text.includes('\0')) continue
    const role =
      (await findOne(storage, { of: 'roles', namespace, name })) ??
      (await findOne(storage, { of: 'roles', namespace: systemNamespace, name }))
    if (role !== undefined) grants.push({ namespace, permissions: new Set(role.permissions) })
  }
  return grants
}

function readClaim(payload: JWTPayload, path: string): unknown {
  // A claim can have dots in its name, such as https://example.com/roles.
  if (Object.hasOwn(payload, path)) return payload[path]
  let value: unknown = payload
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

function readText(payload: JWTPayload, path: string): string | undefined {
  const value = readClaim(payload, path)
  return typeof value === 'string' && value !== '' ? value.slice(0, 256) : undefined
}

function readTexts(payload: JWTPayload, path: string): readonly string[] {
  const value = readClaim(payload, path)
  if (typeof value === 'string') return value.split(/[\s,]+/).filter((text) => text !== '')
  return Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : []
}
