import type { Namespace, Quota, User } from '../core/access/records.ts'
import { createKsuids } from '../core/ids/ksuid.ts'
import type { Clock } from '../core/time/instant.ts'
import type { Attribution } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import { namespaceInUse } from '../storage/shared/rows/access-rows.ts'
import type { ChangeAccess } from './change-access.ts'
import { type AccessReads, findOne, getNamespace, getUser } from './find-records.ts'

export type ListPage = Readonly<{ from?: string; countMax: number }>

export interface Namespaces {
  /** Rejects with NAMESPACE_EXISTS. */
  create(namespace: Omit<Namespace, 'createdAt'>, attribution: Attribution): Promise<void>
  /** Replaces the description and the tag. Rejects with NAMESPACE_NOT_FOUND. */
  update(namespace: Omit<Namespace, 'createdAt' | 'quota'>, attribution: Attribution): Promise<void>
  /** Replaces the quota. Rejects with NAMESPACE_NOT_FOUND. */
  setQuota(name: string, quota: Quota, attribution: Attribution): Promise<void>
  /** Rejects with NAMESPACE_NOT_FOUND, or NAMESPACE_IN_USE while it has bindings, roles or queues. */
  delete(name: string, attribution: Attribution): Promise<void>
  list(page: ListPage): Promise<readonly Namespace[]>
  /** Rejects with NAMESPACE_NOT_FOUND. */
  get(name: string): Promise<Namespace>
}

export interface Users {
  /** Returns the id. Rejects with USER_EXISTS. */
  create(user: Pick<User, 'username' | 'email' | 'externalId'>, attribution: Attribution): Promise<string>
  /** Deletes the user with its keys, sessions and bindings. Rejects with USER_NOT_FOUND. */
  delete(id: string, attribution: Attribution): Promise<void>
  list(page: ListPage): Promise<readonly User[]>
  findByName(username: string): Promise<User | undefined>
}

export type ServiceParts = Readonly<{ storage: AccessReads; change: ChangeAccess; clock: Clock }>

export function createNamespaces({ storage, change, clock }: ServiceParts): Namespaces {
  return {
    create: (namespace, attribution) =>
      change(async () => {
        const { name } = namespace
        if ((await findOne(storage, { of: 'namespaces', name })) !== undefined) {
          throw new KnownError('NAMESPACE_EXISTS', `namespace already exists; '${name}' already exists`)
        }
        const created = { ...namespace, createdAt: clock.now() }
        return {
          changes: [{ change: 'put-namespace', namespace: created }],
          ...audit('namespace.create', name, { namespace }),
        }
      }, attribution),
    update: (namespace, attribution) =>
      change(async () => {
        const existing = await getNamespace(storage, namespace.name)
        return {
          changes: [{ change: 'put-namespace', namespace: { ...existing, ...namespace } }],
          ...audit('namespace.update', namespace.name, { namespace }),
        }
      }, attribution),
    setQuota: (name, quota, attribution) =>
      change(async () => {
        const existing = await getNamespace(storage, name)
        return {
          changes: [{ change: 'put-namespace', namespace: { ...existing, quota } }],
          ...audit('namespace.set-quota', name, { quota, before: existing.quota ?? {} }),
          namespace: name,
        }
      }, attribution),
    delete: (name, attribution) =>
      change(async () => {
        await getNamespace(storage, name)
        await checkUnused(storage, name)
        return {
          changes: [{ change: 'delete-namespace', name }],
          ...audit('namespace.delete', name, {}),
        }
      }, attribution),
    list: (page) => storage.listAccess({ of: 'namespaces', ...page }),
    get: (name) => getNamespace(storage, name),
  }
}

async function checkUnused(storage: AccessReads, name: string): Promise<void> {
  if ((await findOne(storage, { of: 'role-bindings', namespace: name })) !== undefined) {
    throw new KnownError(
      'NAMESPACE_IN_USE',
      `namespace has role bindings; '${name}' has role bindings, delete role bindings first`,
    )
  }
  if ((await findOne(storage, { of: 'roles', namespace: name })) !== undefined) {
    throw new KnownError('NAMESPACE_IN_USE', `namespace has roles; '${name}' has roles, delete roles first`)
  }
  const queues = await storage.listQueues({ namespace: name, countMax: 1 })
  if (queues.length > 0) throw namespaceInUse(name)
}

export function createUsers({ storage, change, clock }: ServiceParts): Users {
  return {
    create: async (given, attribution) => {
      const id = createId(clock)
      await change(async () => {
        const { username } = given
        if ((await findOne(storage, { of: 'users', username })) !== undefined) {
          throw new KnownError('USER_EXISTS', `username is already taken; '${username}' is already taken`)
        }
        const now = clock.now()
        const user = { id, ...given, createdAt: now, updatedAt: now }
        return { changes: [{ change: 'put-user', user }], ...audit('user.create', id, given) }
      }, attribution)
      return id
    },
    delete: (id, attribution) =>
      change(async () => {
        const { username } = await getUser(storage, id)
        return { changes: [{ change: 'delete-user', id }], ...audit('user.delete', id, { username }) }
      }, attribution),
    list: (page) => storage.listAccess({ of: 'users', ...page }),
    findByName: (username) => findOne(storage, { of: 'users', username }),
  }
}

/** The audit row of a change. */
export function audit(action: string, target: string, details: Readonly<Record<string, unknown>>) {
  return { action, target, details }
}

export function createId(clock: Clock): string {
  return createKsuids(undefined, clock.now(), 1, Math.random)[0] as string
}
