import { timingSafeEqual } from 'node:crypto'
import type { Identity } from '../core/access/identity.ts'
import type { Clock, Instant } from '../core/time/instant.ts'
import { KnownError } from '../errors.ts'
import type { CredentialHolder, CredentialRef } from '../storage/contract/access.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { EpochWatch } from './epoch-watch.ts'

/** The identity of a credential of the store, and what ends it. */
export type KnownIdentity = Readonly<{
  identity: Identity
  keyId: string | null
  /** Null: it does not expire. */
  expiresAt: Instant | null
}>

type Entry = Readonly<{ hash: Buffer; epoch: number; known: KnownIdentity }>

/** The oldest entries are forgotten, so that memory does not grow with the number of credentials. */
const entriesMax = 20_000

/**
 * Finds the identity behind a credential of the store, in memory if it was found before. Unknown credentials
 * are not remembered, so a new key works at once on every server.
 */
export class Identities {
  readonly #storage: Pick<StoreReads, 'readHolder'>
  readonly #watch: EpochWatch
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()

  constructor(storage: Pick<StoreReads, 'readHolder'>, watch: EpochWatch, clock: Clock) {
    this.#storage = storage
    this.#watch = watch
    this.#clock = clock
  }

  /**
   * Whether the credential is in memory: then checking it needs no statement, and cannot be an attempt to
   * guess one.
   */
  has(credential: CredentialRef): boolean {
    return this.#entries.has(cacheKey(credential))
  }

  /** Throws or rejects with CREDENTIAL_REFUSED if the credential does not exist or has expired. */
  find(credential: CredentialRef): KnownIdentity | Promise<KnownIdentity> {
    const entry = this.#entries.get(cacheKey(credential))
    if (entry !== undefined && this.#watch.isTrusted() && entry.epoch === this.#watch.epoch) {
      return this.#accept(entry, credential)
    }
    return this.#load(credential)
  }

  forgetAll(): void {
    this.#entries.clear()
  }

  async #load(credential: CredentialRef): Promise<KnownIdentity> {
    const key = cacheKey(credential)
    const entry = this.#entries.get(key)
    if (entry !== undefined && entry.epoch === this.#watch.epoch && !this.#watch.isTrusted()) {
      await this.#watch.check()
      if (entry.epoch === this.#watch.epoch) return this.#accept(entry, credential)
    }
    const startedMs = this.#watch.now()
    const holder = await this.#storage.readHolder(credential)
    if (holder === null) {
      this.#entries.delete(key)
      throw refused('api key does not exist')
    }
    this.#watch.note(holder.epoch, startedMs)
    const read: Entry = { hash: Buffer.from(key), epoch: holder.epoch, known: toKnownIdentity(holder) }
    this.#keep(key, read)
    return this.#accept(read, credential)
  }

  #keep(key: string, entry: Entry): void {
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    if (this.#entries.size <= entriesMax) return
    const oldest = this.#entries.keys().next().value
    if (oldest !== undefined) this.#entries.delete(oldest)
  }

  #accept({ hash, known }: Entry, credential: CredentialRef): KnownIdentity {
    if (!isEqual(hash, cacheKey(credential))) throw refused('api key does not exist')
    if (known.expiresAt !== null && known.expiresAt <= this.#clock.now()) throw refused('api key has expired')
    return known
  }
}

export function refused(message: string): KnownError {
  return new KnownError('CREDENTIAL_REFUSED', message)
}

function cacheKey(credential: CredentialRef): string {
  if ('keyHash' in credential) return credential.keyHash
  // A user id is no hash: the prefix keeps it from being taken for one.
  return 'sessionHash' in credential ? `session:${credential.sessionHash}` : `user:${credential.userId}`
}

/** Holds the presented text: a buffer per request would cost more than the comparison. */
const presented = Buffer.alloc(1_024)

function isEqual(stored: Buffer, text: string): boolean {
  const bytes = presented.write(text)
  return bytes === stored.length && timingSafeEqual(stored, presented.subarray(0, bytes))
}

export function toKnownIdentity({ user, key, session, roles }: CredentialHolder): KnownIdentity {
  const ends = [key?.expiresAt, session?.expiresAt].filter((at) => at !== null && at !== undefined)
  return {
    identity: {
      userId: user.id,
      name: user.username,
      keyPrefix: key?.prefix ?? null,
      scope: key?.scope ?? null,
      grants: roles.map(({ namespace, role }) => ({ namespace, permissions: new Set(role.permissions) })),
    },
    keyId: key?.id ?? null,
    expiresAt: ends.length === 0 ? null : Math.min(...ends),
  }
}
