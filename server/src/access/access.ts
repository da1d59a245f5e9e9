/**
 * The interface of this layer for `api/`: who is calling, what they may do, and the administration of
 * namespaces, users, keys and roles. Rules are in `core/access/`.
 */
import type { Identity } from '../core/access/identity.ts'
import type { ApiKeys } from './api-keys.ts'
import type { Namespaces, Users } from './namespaces-and-users.ts'
import type { RoleBindings, Roles } from './roles.ts'
import type { Sessions } from './sessions.ts'

/** The credential of a request. `bearer`: an API key, or a token of an identity provider. */
export type Credential = Readonly<
  { kind: 'bearer'; text: string } | { kind: 'session'; token: string } | { kind: 'none' }
>

export interface Access {
  readonly namespaces: Namespaces
  readonly users: Users
  readonly apiKeys: ApiKeys
  readonly roles: Roles
  readonly roleBindings: RoleBindings
  readonly sessions: Sessions
  /**
   * Returns at once if the credential is known in memory. Throws or rejects with CREDENTIAL_REFUSED if it is
   * wrong, and with TOO_MANY_FAILED_ATTEMPTS if the address sent too many wrong ones.
   */
  identify(credential: Credential, address: string): Identity | Promise<Identity>
  /** A number that grows with each change that can change what a credential allows, on any server. */
  readEpoch(): number | Promise<number>
  /** Records when keys were last used. */
  recordKeyUses(): Promise<void>
}
