/**
 * Namespaces, users, API keys, roles, bindings and sessions.
 *
 * The store keeps rows and decides nothing. The layer `access/` reads the version, checks a change against
 * the rows, and writes it with this version; if another change was committed in the meantime, the write is
 * rejected with ACCESS_CHANGED, and the layer checks again.
 */
import type { ApiKey, Namespace, Role, RoleBinding, Session, User } from '../../core/access/records.ts'
import type { Instant } from '../../core/time/instant.ts'

export type AccessCommand = ChangeAccess | RecordKeyUses | CreateSession

export type AccessResults = {
  'change-access': undefined
  'record-key-uses': undefined
  'create-session': undefined
}

export interface AccessStore {
  readAccessState(): Promise<AccessState>
  /** In byte order of their names (namespaces) or ids (others). */
  listAccess<const Q extends AccessQuery>(query: Q): Promise<readonly AccessRecords[Q['of']][]>
  /** Everything that decides what the holder of a credential may do; null: there is no such credential. */
  readHolder(credential: CredentialRef): Promise<CredentialHolder | null>
}

/**
 * `version` increases with each change. `epoch` increases with each change that can change what an existing
 * credential allows: what was read in an earlier epoch may be outdated.
 *
 * `initialisedAt`: when the standard roles and the binding `openBindingId` of the user `anonymous` were
 * created. `closedAt`: when a server first required credentials. Null: not yet.
 */
export type AccessState = Readonly<{
  version: number
  epoch: number
  initialisedAt: Instant | null
  closedAt: Instant | null
  openBindingId: string | null
}>

export type AccessRecords = {
  namespaces: Namespace
  users: User
  'api-keys': ApiKey
  roles: Role
  'role-bindings': RoleBinding
}

/** Conditions that are not given do not limit the list. `from`: the first name or id to list, included. */
export type AccessQuery = Readonly<
  { from?: string; countMax: number } & (
    | { of: 'namespaces'; name?: string }
    | { of: 'users'; id?: string; username?: string }
    | { of: 'api-keys'; id?: string; userId?: string; prefix?: string }
    | { of: 'roles'; id?: string; namespace?: string; name?: string }
    | { of: 'role-bindings'; namespace?: string; userId?: string; roleId?: string }
  )
>

/** `keyHash` and `sessionHash`: SHA-256 as 64 hexadecimal digits. `userId`: for callers without a key. */
export type CredentialRef = Readonly<{ keyHash: string } | { sessionHash: string } | { userId: string }>

/** `key` is null for a user without a key, `session` for a credential that is no session. */
export type CredentialHolder = Readonly<{
  epoch: number
  user: User
  key: ApiKey | null
  session: Session | null
  /** The roles of all bindings of the user, each with the namespace of its binding. */
  roles: readonly Readonly<{ namespace: string; role: Role }>[]
}>

/**
 * `version`: the version that the changes were checked against; the write is rejected with ACCESS_CHANGED if
 * it is not the newest. Deleting a namespace that has queues is rejected with NAMESPACE_IN_USE.
 */
export type ChangeAccess = Readonly<{
  op: 'change-access'
  version: number
  changes: readonly AccessChange[]
}>

/** A `put` creates the record or replaces the one with its id or name. */
export type AccessChange = Readonly<
  | { change: 'put-namespace'; namespace: Namespace }
  | { change: 'delete-namespace'; name: string }
  | { change: 'put-user'; user: User }
  /** With its keys, sessions and bindings. */
  | { change: 'delete-user'; id: string }
  | { change: 'create-api-key'; key: ApiKey; hash: string }
  /** With its sessions. */
  | { change: 'delete-api-key'; id: string }
  | { change: 'put-role'; role: Role }
  | { change: 'delete-role'; id: string }
  | { change: 'create-role-binding'; binding: RoleBinding }
  | { change: 'delete-role-binding'; id: string }
  | { change: 'delete-session'; hash: string }
  | ({ change: 'set-state' } & Partial<Pick<AccessState, 'initialisedAt' | 'closedAt' | 'openBindingId'>>)
>

/**
 * Records when keys were last used. An earlier time than the recorded one changes nothing, and keys that do
 * not exist are skipped.
 */
export type RecordKeyUses = Readonly<{
  op: 'record-key-uses'
  uses: readonly Readonly<{ keyId: string; at: Instant }>[]
}>

/** Also deletes sessions that ended before `now`. Rejected with API_KEY_NOT_FOUND if its key was deleted. */
export type CreateSession = Readonly<{ op: 'create-session'; session: Session; now: Instant }>
