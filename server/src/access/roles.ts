import type { Permission } from '../core/access/permissions.ts'
import type { Role, RoleBinding } from '../core/access/records.ts'
import { isStandardRole } from '../core/access/standard-roles.ts'
import { systemNamespace } from '../core/items/queue.ts'
import type { Attribution } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import { findBinding, findOne, getBindableRole, getNamespace, getRole, getUser } from './find-records.ts'
import { audit, createId, type ListPage, type ServiceParts } from './namespaces-and-users.ts'

export type RoleSpec = Readonly<{ namespace: string; name: string; permissions: readonly Permission[] }>
export type BindingSpec = Readonly<{ namespace: string; roleName: string; userId: string }>

export interface Roles {
  /** Returns the id. Rejects with NAMESPACE_NOT_FOUND or ROLE_EXISTS. */
  create(role: RoleSpec, attribution: Attribution): Promise<string>
  /** Replaces the permissions. Rejects with NAMESPACE_NOT_FOUND, ROLE_NOT_FOUND or ROLE_STANDARD. */
  update(role: RoleSpec, attribution: Attribution): Promise<void>
  /** Rejects with ROLE_NOT_FOUND or ROLE_STANDARD, or with ROLE_IN_USE while it has bindings. */
  delete(role: Omit<RoleSpec, 'permissions'>, attribution: Attribution): Promise<void>
  list(page: ListPage & { namespace: string }): Promise<readonly Role[]>
}

export interface RoleBindings {
  /** Returns the id. Rejects with NAMESPACE_, ROLE_ or USER_NOT_FOUND, or with ROLE_BINDING_EXISTS. */
  create(binding: BindingSpec, attribution: Attribution): Promise<string>
  /** Effective on every server when it resolves. Rejects with ROLE_NOT_FOUND or ROLE_BINDING_NOT_FOUND. */
  delete(binding: BindingSpec, attribution: Attribution): Promise<void>
  list(page: ListPage & { namespace: string; userId?: string }): Promise<readonly RoleBinding[]>
}

export function createRoles({ storage, change, clock }: ServiceParts): Roles {
  return {
    create: async (spec, attribution) => {
      const id = createId(clock)
      await change(async () => {
        const { namespace, name } = spec
        await getNamespace(storage, namespace)
        if ((await findOne(storage, { of: 'roles', namespace, name })) !== undefined) {
          throw new KnownError('ROLE_EXISTS', `role already exists; '${namespace}:${name}' already exists`)
        }
        const role = { id, ...spec, createdAt: clock.now() }
        return { changes: [{ change: 'put-role', role }], ...audit('role.create', id, spec), namespace }
      }, attribution)
      return id
    },
    update: (spec, attribution) =>
      change(async () => {
        const { namespace, name, permissions } = spec
        checkNotStandard(namespace, name)
        await getNamespace(storage, namespace)
        const role = await getRole(storage, namespace, name)
        return {
          changes: [{ change: 'put-role', role: { ...role, permissions } }],
          ...audit('role.update', role.id, { ...spec, previously: role.permissions }),
          namespace,
        }
      }, attribution),
    delete: ({ namespace, name }, attribution) =>
      change(async () => {
        checkNotStandard(namespace, name)
        await getNamespace(storage, namespace)
        const { id } = await getRole(storage, namespace, name)
        if ((await findOne(storage, { of: 'role-bindings', roleId: id })) !== undefined) {
          throw new KnownError(
            'ROLE_IN_USE',
            `role has active bindings; '${name}' has active bindings, delete bindings first`,
          )
        }
        return {
          changes: [{ change: 'delete-role', id }],
          ...audit('role.delete', id, { namespace, name }),
          namespace,
        }
      }, attribution),
    list: (page) => storage.listAccess({ of: 'roles', ...page }),
  }
}

function checkNotStandard(namespace: string, name: string): void {
  if (namespace !== systemNamespace || !isStandardRole(name)) return
  throw new KnownError('ROLE_STANDARD', `cannot modify or delete standard role; '${name}' is a standard role`)
}

export function createRoleBindings({ storage, change, clock }: ServiceParts): RoleBindings {
  return {
    create: async ({ namespace, roleName, userId }, attribution) => {
      const id = createId(clock)
      await change(async () => {
        await getNamespace(storage, namespace)
        const role = await getBindableRole(storage, namespace, roleName)
        await getUser(storage, userId)
        if ((await findBinding(storage, { namespace, userId, roleId: role.id })) !== undefined) {
          throw new KnownError(
            'ROLE_BINDING_EXISTS',
            `role binding already exists; binding for user '${userId}' to role '${role.id}' in namespace '${namespace}' already exists`,
          )
        }
        const binding = { id, namespace, userId, roleId: role.id, createdAt: clock.now() }
        return {
          changes: [{ change: 'create-role-binding', binding }],
          ...audit('rolebinding.create', id, { namespace, role: roleName, user_id: userId }),
          namespace,
        }
      }, attribution)
      return id
    },
    delete: ({ namespace, roleName, userId }, attribution) =>
      change(async () => {
        const role = await getBindableRole(storage, namespace, roleName)
        const binding = await findBinding(storage, { namespace, userId, roleId: role.id })
        if (binding === undefined) {
          throw new KnownError(
            'ROLE_BINDING_NOT_FOUND',
            `role binding does not exist; '${namespace}:${userId}:${role.id}' was not found`,
          )
        }
        return {
          changes: [{ change: 'delete-role-binding', id: binding.id }],
          ...audit('rolebinding.delete', binding.id, { namespace, role: roleName, user_id: userId }),
          namespace,
        }
      }, attribution),
    list: (page) => storage.listAccess({ of: 'role-bindings', ...page }),
  }
}
