/**
 * The place where the commands for keys act: a running server, or the store itself. The store needs no key,
 * so a person with access to the store can never be locked out.
 */

import { createAccess } from '../access/create-access.ts'
import { prepareAccess } from '../access/first-start.ts'
import type { Settings } from '../config/settings/settings.ts'
import type { ApiKey, User } from '../core/access/records.ts'
import { createEngine } from '../engine/create-engine.ts'
import type { Attribution } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type { Context } from './context.ts'
import { withStorage } from './with-storage.ts'

export type NewKey = Readonly<{ userId: string; name: string; scope: string; expiresAt: string | undefined }>
export type ListedKey = Readonly<{
  id: string
  userId: string
  prefix: string
  name: string
  scope: string
  expiresAt: string
  lastUsedAt: string
}>
export type ListedUser = Readonly<{ id: string; username: string }>

export interface AccessTarget {
  /** Whether requests need a credential: of the server, or by the settings of the command. */
  readMode(): Promise<Settings['access']>
  listUsers(): Promise<readonly ListedUser[]>
  createUser(username: string): Promise<string>
  /** Does nothing if the user has the role already. */
  bind(namespace: string, roleName: string, userId: string): Promise<void>
  createKey(key: NewKey): Promise<Readonly<{ id: string; key: string }>>
  listKeys(): Promise<readonly ListedKey[]>
  deleteKey(id: string): Promise<void>
  /** Returns lines such as `Admin in _system`, by user id. */
  listBindings(): Promise<ReadonlyMap<string, readonly string[]>>
}

const attribution: Attribution = { actor: 'command line', reason: '', requestId: '' }
const countMax = 10_000

/** Runs `work` on the store. Refused while another program uses the same SQLite file. */
export async function withStoreTarget(
  settings: Settings,
  context: Context,
  work: (target: AccessTarget) => Promise<number>,
): Promise<number> {
  return withStorage(settings, context, {
    mayCreate: false,
    work: async (storage) => {
      const { clock } = storage
      const engine = createEngine(storage, { clock, isTicking: false })
      try {
        await prepareAccess({ storage, engine, clock }, false)
        const access = createAccess({ storage, engine, clock, sessionMs: 0, failedAttemptsMax: 1 })
        return await work(toStoreTarget(access, settings))
      } finally {
        await engine.close()
      }
    },
  }).catch((error: unknown) => {
    if (!(error instanceof KnownError) || error.code !== 'STORE_LOCKED') throw error
    throw new KnownError(
      'STORE_LOCKED',
      `${error.message}. A server uses it: add --server <url> and --key <key>, or stop the server`,
      error,
    )
  })
}

function toStoreTarget(access: ReturnType<typeof createAccess>, settings: Settings): AccessTarget {
  return {
    readMode: async () => settings.access,
    listUsers: async () => (await access.users.list({ countMax })).map(toListedUser),
    createUser: (username) => access.users.create({ username, email: '', externalId: '' }, attribution),
    bind: (namespace, roleName, userId) =>
      access.roleBindings.create({ namespace, roleName, userId }, attribution).then(
        () => undefined,
        (error: unknown) => {
          if (!(error instanceof KnownError) || error.code !== 'ROLE_BINDING_EXISTS') throw error
        },
      ),
    createKey: ({ userId, name, scope, expiresAt }) =>
      access.apiKeys.create(
        {
          userId,
          name,
          scope: scope === '' ? null : scope,
          expiresAt: expiresAt === undefined ? null : Date.parse(expiresAt) * 1_000,
          tag: '',
        },
        attribution,
      ),
    listKeys: async () => (await access.apiKeys.list({ countMax })).map(toListedKey),
    deleteKey: (id) => access.apiKeys.delete(id, attribution),
    listBindings: async () => {
      const found = new Map<string, string[]>()
      for (const { name: namespace } of await access.namespaces.list({ countMax })) {
        const roles = new Map<string, string>()
        for (const scope of new Set(['_system', namespace])) {
          for (const { id, name } of await access.roles.list({ namespace: scope, countMax }))
            roles.set(id, name)
        }
        for (const { userId, roleId } of await access.roleBindings.list({ namespace, countMax })) {
          const line = `${roles.get(roleId) ?? roleId} in ${namespace}`
          found.set(userId, [...(found.get(userId) ?? []), line])
        }
      }
      return found
    },
  }
}

function toListedUser({ id, username }: User): ListedUser {
  return { id, username }
}

function toListedKey({ id, userId, prefix, name, scope, expiresAt, lastUsedAt }: ApiKey): ListedKey {
  const time = (instant: number | null): string =>
    instant === null ? '' : new Date(instant / 1_000).toISOString()
  return {
    id,
    userId,
    prefix,
    name,
    scope: scope ?? '',
    expiresAt: time(expiresAt),
    lastUsedAt: time(lastUsedAt),
  }
}

type Wire = Readonly<Record<string, unknown> & { items?: readonly Readonly<Record<string, string>>[] }>

/** Calls the Queue API of a running server. */
export function createServerTarget(url: string, key: string): AccessTarget {
  const call = async (method: string, body: object): Promise<Wire> => {
    const response = await fetch(new URL(`/v1/${method}`, url), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(key !== '' && { Authorization: `Bearer ${key}` }) },
      body: JSON.stringify(body),
    }).catch((error: unknown) => {
      throw new KnownError('BAD_REQUEST', `there is no server at ${url}`, error)
    })
    const answer = (await response.json()) as Wire
    if (response.status === 200) return answer
    throw new KnownError('BAD_REQUEST', `${method}: ${response.status} ${String(answer.message)}`)
  }
  const readMode: AccessTarget['readMode'] = async () => {
    const response = await fetch(new URL('/api/v1/session', url))
    const { is_required: isRequired } = (await response.json()) as { is_required?: boolean }
    return isRequired === true ? 'keys' : 'off'
  }
  const list = async (method: string, body: object = {}) => (await call(method, body)).items ?? []
  return {
    readMode,
    listUsers: async () =>
      (await list('users.list', { limit: countMax })).map(({ id = '', username = '' }) => ({ id, username })),
    createUser: async (username) => String((await call('users.create', { username })).id),
    bind: async (namespace, role_name, user_id) => {
      const bound = await list('rolebindings.list', { namespace, user_id_filter: user_id })
      const roles = await list('roles.list', { namespace: '_system' })
      const own = namespace === '_system' ? [] : await list('roles.list', { namespace })
      const role = [...own, ...roles].find(({ name }) => name === role_name)
      if (bound.some(({ role_id }) => role_id === role?.id)) return
      await call('rolebindings.create', { namespace, role_name, user_id })
    },
    createKey: async ({ userId, name, scope, expiresAt }) => {
      const body = { user_id: userId, name, namespace_scope: scope }
      const created = await call('apikeys.create', {
        ...body,
        ...(expiresAt !== undefined && { expires_at: expiresAt }),
      })
      return { id: String(created.id), key: String(created.key) }
    },
    listKeys: async () =>
      (await list('apikeys.list', { limit: countMax })).map((item) => ({
        id: item.id ?? '',
        userId: item.user_id ?? '',
        prefix: item.prefix ?? '',
        name: item.name ?? '',
        scope: item.namespace_scope ?? '',
        expiresAt: item.expires_at ?? '',
        lastUsedAt: item.last_used_at ?? '',
      })),
    deleteKey: async (id) => void (await call('apikeys.delete', { id })),
    listBindings: async () => {
      const found = new Map<string, string[]>()
      for (const { name: namespace = '' } of await list('namespaces.list', { limit: countMax })) {
        const roles = new Map<string, string>()
        for (const scope of new Set(['_system', namespace])) {
          for (const { id = '', name = '' } of await list('roles.list', { namespace: scope }))
            roles.set(id, name)
        }
        for (const { user_id = '', role_id = '' } of await list('rolebindings.list', { namespace })) {
          const line = `${roles.get(role_id) ?? role_id} in ${namespace}`
          found.set(user_id, [...(found.get(user_id) ?? []), line])
        }
      }
      return found
    },
  }
}
