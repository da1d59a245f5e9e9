/** Decides where a caller may act. */
import { systemNamespace } from '../items/queue.ts'
import { isSystemPermission, type Permission } from './permissions.ts'

/** The permissions of a user in one namespace: those of all roles that are bound there. */
export type Grant = Readonly<{ namespace: string; permissions: ReadonlySet<Permission> }>

/**
 * `scope`: the namespace that a key is limited to; null: not limited. Such a key acts in its namespace and in
 * `_system` only.
 */
export type Grants = Readonly<{ grants: readonly Grant[]; scope: string | null }>

/** A role in `_system` is valid in every namespace. */
export function mayAct({ grants, scope }: Grants, permission: Permission, namespace: string): boolean {
  if (permission === 'public') return true
  if (scope !== null && namespace !== scope && namespace !== systemNamespace) return false
  return grants.some(
    (grant) =>
      (grant.namespace === namespace || grant.namespace === systemNamespace) &&
      grant.permissions.has(permission),
  )
}

/** Whether the caller has the permission at all. If not, a request is refused before its body is read. */
export function mayActSomewhere(holder: Grants, permission: Permission): boolean {
  if (isSystemPermission(permission)) return mayAct(holder, permission, systemNamespace)
  if (permission === 'public') return true
  return holder.grants.some(
    ({ namespace, permissions }) => permissions.has(permission) && mayAct(holder, permission, namespace),
  )
}

/** The namespaces in which the caller has the permission. Null: all of them, also future ones. */
export function listNamespaces({ grants, scope }: Grants, permission: Permission): readonly string[] | null {
  const holding = grants.filter((grant) => grant.permissions.has(permission)).map((grant) => grant.namespace)
  const isGlobal = holding.includes(systemNamespace)
  if (scope === null) return isGlobal ? null : holding
  if (isGlobal) return scope === systemNamespace ? [systemNamespace] : [scope, systemNamespace]
  return holding.filter((namespace) => namespace === scope)
}

/** Whether `after` allows everything that `before` allowed. */
export function coversGrants(after: Grants, before: Grants): boolean {
  if (after.scope !== before.scope) return false
  return before.grants.every(({ namespace, permissions }) =>
    [...permissions].every((permission) => mayAct({ ...after, scope: null }, permission, namespace)),
  )
}
