/** The records of access control: who exists, and what they may do. The Queue API defines their fields. */
import type { Instant } from '../time/instant.ts'
import type { Permission } from './permissions.ts'

/**
 * `keyTag`: the tag of new keys that are limited to the namespace; empty: none. `quota`: undefined: no limit.
 */
export type Namespace = Readonly<{
  name: string
  description: string
  keyTag: string
  createdAt: Instant
  quota?: Quota
}>

/** The limits of a namespace. A limit that is absent does not exist. */
export type Quota = Readonly<{
  queuesMax?: number
  /** Items in all queues, in every state, without the archive. */
  itemsMax?: number
  /** The payloads of these items. */
  bytesMax?: number
  /** At each server process. */
  requestsPerSecondMax?: number
}>

/** `externalId`: the id of the user in another system. */
export type User = Readonly<{
  id: string
  username: string
  email: string
  externalId: string
  createdAt: Instant
  updatedAt: Instant
}>

/**
 * An API key, without the key itself: only its SHA-256 is stored. `scope`: the namespace that the key is
 * limited to; null: not limited. `prefix`: the visible part.
 */
export type ApiKey = Readonly<{
  id: string
  userId: string
  scope: string | null
  name: string
  prefix: string
  expiresAt: Instant | null
  lastUsedAt: Instant | null
  createdAt: Instant
}>

export type Role = Readonly<{
  id: string
  namespace: string
  name: string
  permissions: readonly Permission[]
  createdAt: Instant
}>

/** Gives a user the permissions of a role in a namespace. The role is of this namespace or of `_system`. */
export type RoleBinding = Readonly<{
  id: string
  namespace: string
  userId: string
  roleId: string
  createdAt: Instant
}>

/** The session of a browser that signed in with a key. It ends with its key. Only its SHA-256 is stored. */
export type Session = Readonly<{ hash: string; keyId: string; createdAt: Instant; expiresAt: Instant }>
