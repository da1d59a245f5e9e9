import { systemNamespace } from '../items/queue.ts'
import type { Grants } from './grants.ts'
import { grantablePermissions } from './permissions.ts'

/** The id and the name of the user that stands for every caller without a credential. */
export const anonymousUserId = 'anonymous'

/**
 * The user behind a request, with everything that the user may do. `keyPrefix`: the visible part of the API
 * key; null: the caller has no key.
 */
export type Identity = Readonly<{ userId: string; name: string; keyPrefix: string | null }> & Grants

/** Used without access control: all permissions in all namespaces. */
export const unrestricted: Identity = {
  userId: anonymousUserId,
  name: anonymousUserId,
  keyPrefix: null,
  grants: [{ namespace: systemNamespace, permissions: new Set(grantablePermissions) }],
  scope: null,
}

/** A caller without a credential, if the user `anonymous` has no role. */
export const nobody: Identity = { ...unrestricted, grants: [] }
