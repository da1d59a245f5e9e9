import { anonymousUserId, type Identity, nobody } from '../core/access/identity.ts'
import type { Clock } from '../core/time/instant.ts'
import type { Engine } from '../engine/engine.ts'
import { readWithin } from '../engine/timing/deadline.ts'
import { KnownError } from '../errors.ts'
import type { CredentialRef } from '../storage/contract/access.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { Access } from './access.ts'
import { hashSecret, hasKeyForm } from './api-key-text.ts'
import { createApiKeys } from './api-keys.ts'
import { createChangeAccess } from './change-access.ts'
import { createEpochWatch, createPassedMs } from './epoch-watch.ts'
import { createFailedAttempts } from './failed-attempts.ts'
import { Identities, type KnownIdentity, refused } from './identities.ts'
import { createKeyUses } from './key-uses.ts'
import { createNamespaces, createUsers } from './namespaces-and-users.ts'
import { createRoleBindings, createRoles } from './roles.ts'
import { createSessions } from './sessions.ts'
import { createTokens, type IdentityProvider, type Tokens } from './tokens.ts'

export type AccessOptions = Readonly<{
  storage: StoreReads
  engine: Pick<Engine, 'write'>
  clock: Clock
  /** How long a session of a browser lasts. */
  sessionMs: number
  /** Wrong credentials per minute and address. */
  failedAttemptsMax: number
  /** Undefined: only API keys are accepted. */
  provider?: IdentityProvider | undefined
  /** For tests: a clock that only goes forward. */
  nowMs?: () => number
}>

/** How long a server with others on its store trusts what it remembers: see epoch-watch.ts. */
const sharedTrustMs = 400
/** How often servers look whether requests that wait or stream have lost their credential. */
export const openRequestsMs = 100
/** Other servers may measure time a little differently. */
const trustMarginMs = 50
const attemptWindowMs = 60_000
/** A store that hangs must not make requests wait: they share the read of the epoch. */
const readMsMax = 3_000

export function createAccess(options: AccessOptions): Access {
  const { storage, engine, clock, sessionMs, failedAttemptsMax, provider } = options
  const nowMs = options.nowMs ?? createPassedMs()
  const reads = limitReads(storage)
  const isShared = storage.kind === 'postgres'
  const watch = createEpochWatch({
    readEpoch: reads.readEpoch,
    trustMs: isShared ? sharedTrustMs : Number.POSITIVE_INFINITY,
    nowMs,
  })
  const identities = new Identities(reads, watch, clock)
  const tokens = provider === undefined ? undefined : createTokens({ provider, storage, watch, clock })
  const uses = createKeyUses(engine, clock)
  const attempts = createFailedAttempts({ attemptsMax: failedAttemptsMax, windowMs: attemptWindowMs, nowMs })
  const change = createChangeAccess({
    storage,
    engine,
    clock,
    onChanged: watch.refresh,
    propagationMs: isShared ? sharedTrustMs + openRequestsMs + trustMarginMs : 0,
  })
  const parts = { storage, change, clock }

  const accept = ({ identity, keyId }: KnownIdentity): Identity => {
    if (keyId !== null) uses.note(keyId)
    return identity
  }
  const findOrCount = (ref: CredentialRef, address: string): Identity | Promise<Identity> => {
    if (!identities.has(ref) && attempts.isBlocked(address)) throw tooManyAttempts()
    const found = identities.find(ref)
    if (!(found instanceof Promise)) return accept(found)
    return found.then(accept, (error: unknown) => {
      if (isRefused(error)) attempts.note(address)
      throw error
    })
  }
  /** A session that has ended is no wrong credential: its browser has to sign in again. */
  const findBySession = async (sessionHash: string, address: string): Promise<Identity> => {
    const ref = { sessionHash }
    if (attempts.isBlocked(address) && !identities.has(ref)) return findAnonymous(identities)
    try {
      return accept(await identities.find(ref))
    } catch (error) {
      if (!isRefused(error)) throw error
      return findAnonymous(identities)
    }
  }
  const findByToken = async (verifier: Tokens, text: string, address: string): Promise<Identity> => {
    if (attempts.isBlocked(address) && !verifier.isKnown(text)) throw tooManyAttempts()
    try {
      return await verifier.identify(text)
    } catch (error) {
      if (isRefused(error)) attempts.note(address)
      throw error
    }
  }
  return {
    namespaces: createNamespaces(parts),
    users: createUsers(parts),
    apiKeys: createApiKeys(parts),
    roles: createRoles(parts),
    roleBindings: createRoleBindings(parts),
    sessions: createSessions({ engine, change, identities, clock, sessionMs }),
    identify: (credential, address) => {
      if (credential.kind === 'none') return findAnonymous(identities)
      if (credential.kind === 'session') return findBySession(hashSecret(credential.token), address)
      const { text } = credential
      if (tokens?.hasForm(text) === true) return findByToken(tokens, text, address)
      if (hasKeyForm(text)) return findOrCount({ keyHash: hashSecret(text) }, address)
      if (attempts.isBlocked(address)) throw tooManyAttempts()
      attempts.note(address)
      throw refused('api key is invalid')
    },
    recordKeyUses: uses.pass,
    readEpoch: () => (watch.isTrusted() ? watch.epoch : watch.check().then(() => watch.epoch)),
  }
}

function limitReads(storage: Pick<StoreReads, 'readAccessState' | 'readHolder'>) {
  return {
    readEpoch: async () => (await readWithin(readMsMax, storage.readAccessState())).epoch,
    readHolder: (credential: CredentialRef) => readWithin(readMsMax, storage.readHolder(credential)),
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'CREDENTIAL_REFUSED'
}

function findAnonymous(identities: Identities): Identity | Promise<Identity> {
  const found = identities.find({ userId: anonymousUserId })
  if (!(found instanceof Promise)) return found.identity
  return found.then(
    ({ identity }) => identity,
    (error: unknown) => {
      // An administrator may delete the user `anonymous`: then a caller without a credential has no role.
      if (isRefused(error)) return nobody
      throw error
    },
  )
}

function tooManyAttempts(): KnownError {
  return new KnownError(
    'TOO_MANY_FAILED_ATTEMPTS',
    'this address has sent too many wrong credentials within a minute',
  )
}
