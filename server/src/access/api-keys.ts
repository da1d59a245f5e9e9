import type { ApiKey } from '../core/access/records.ts'
import type { Instant } from '../core/time/instant.ts'
import type { Attribution } from '../engine/engine.ts'
import { createKeyText } from './api-key-text.ts'
import { findOne, getKey, getUser } from './find-records.ts'
import { audit, createId, type ListPage, type ServiceParts } from './namespaces-and-users.ts'

/** `tag`: the tag in the text of the key; empty: the tag of the namespace, otherwise `live`. */
export type NewApiKey = Readonly<{
  userId: string
  name: string
  scope: string | null
  expiresAt: Instant | null
  tag: string
}>

/** `key` exists only here: it is not stored. */
export type CreatedApiKey = Readonly<{ id: string; key: string; prefix: string }>

export interface ApiKeys {
  /** Rejects with USER_NOT_FOUND. The namespace of the scope need not exist yet. */
  create(key: NewApiKey, attribution: Attribution): Promise<CreatedApiKey>
  /** Revokes the key on every server. Rejects with API_KEY_NOT_FOUND. */
  delete(id: string, attribution: Attribution): Promise<void>
  list(page: ListPage & { userId?: string }): Promise<readonly ApiKey[]>
  findByPrefix(prefix: string): Promise<readonly ApiKey[]>
}

const defaultTag = 'live'

export function createApiKeys({ storage, change, clock }: ServiceParts): ApiKeys {
  return {
    create: async ({ userId, name, scope, expiresAt, tag }, attribution) => {
      const id = createId(clock)
      let created: CreatedApiKey | undefined
      await change(async () => {
        await getUser(storage, userId)
        const namespace =
          scope === null ? undefined : await findOne(storage, { of: 'namespaces', name: scope })
        const { key, prefix, hash } = createKeyText(tag || namespace?.keyTag || defaultTag)
        created = { id, key, prefix }
        const row: ApiKey = {
          id,
          userId,
          scope,
          name,
          prefix,
          expiresAt,
          lastUsedAt: null,
          createdAt: clock.now(),
        }
        return {
          changes: [{ change: 'create-api-key', key: row, hash }],
          ...audit('apikey.create', id, { user_id: userId, name, prefix, scope, expires_at: expiresAt }),
        }
      }, attribution)
      return created as CreatedApiKey
    },
    delete: (id, attribution) =>
      change(async () => {
        const { userId, name, prefix } = await getKey(storage, id)
        return {
          changes: [{ change: 'delete-api-key', id }],
          ...audit('apikey.delete', id, { user_id: userId, name, prefix }),
        }
      }, attribution),
    list: (page) => storage.listAccess({ of: 'api-keys', ...page }),
    findByPrefix: (prefix) => storage.listAccess({ of: 'api-keys', prefix, countMax: 2 }),
  }
}
