/** Reads single records of access control, or throws the error that every API answers. */
import type { ApiKey, Namespace, Role, RoleBinding, User } from '../core/access/records.ts'
import { isStandardRole } from '../core/access/standard-roles.ts'
import { systemNamespace } from '../core/items/queue.ts'
import { KnownError } from '../errors.ts'
import type { AccessQuery, AccessRecords } from '../storage/contract/access.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { keyNotFound, namespaceNotFound } from '../storage/shared/rows/access-rows.ts'

export type AccessReads = Pick<StoreReads, 'listAccess' | 'listQueues'>

/** `query` without a number of records. */
type One<Q extends AccessQuery> = Q extends AccessQuery ? Omit<Q, 'countMax'> : never

export async function findOne<const Q extends One<AccessQuery>>(
  storage: AccessReads,
  query: Q,
): Promise<AccessRecords[Q['of']] | undefined> {
  const [found] = await storage.listAccess({ ...query, countMax: 1 } as unknown as AccessQuery)
  return found as AccessRecords[Q['of']] | undefined
}

export async function getNamespace(storage: AccessReads, name: string): Promise<Namespace> {
  const found = await findOne(storage, { of: 'namespaces', name })
  if (found === undefined) throw namespaceNotFound(name)
  return found
}

export async function getUser(storage: AccessReads, id: string): Promise<User> {
  const found = await findOne(storage, { of: 'users', id })
  if (found === undefined) {
    throw new KnownError('USER_NOT_FOUND', `user does not exist; '${id}' was not found`)
  }
  return found
}

export async function getKey(storage: AccessReads, id: string): Promise<ApiKey> {
  const found = await findOne(storage, { of: 'api-keys', id })
  if (found === undefined) throw keyNotFound()
  return found
}

export async function getRole(storage: AccessReads, namespace: string, name: string): Promise<Role> {
  const found = await findOne(storage, { of: 'roles', namespace, name })
  if (found === undefined) {
    throw new KnownError('ROLE_NOT_FOUND', `role does not exist; '${namespace}:${name}' was not found`)
  }
  return found
}

/** The role of a binding: of its namespace, or a standard role, which can be bound in every namespace. */
export async function getBindableRole(storage: AccessReads, namespace: string, name: string): Promise<Role> {
  const found = await findOne(storage, { of: 'roles', namespace, name })
  if (found !== undefined || namespace === systemNamespace || !isStandardRole(name)) {
    return found ?? getRole(storage, namespace, name)
  }
  return getRole(storage, systemNamespace, name)
}

export async function findBinding(
  storage: AccessReads,
  binding: Readonly<{ namespace: string; userId: string; roleId: string }>,
): Promise<RoleBinding | undefined> {
  return findOne(storage, { of: 'role-bindings', ...binding })
}
