/** The rows of the tables of access control, which have the same columns in both stores. */
import { isPermission } from '../../../core/access/permissions.ts'
import type {
  ApiKey,
  Namespace,
  Quota,
  Role,
  RoleBinding,
  Session,
  User,
} from '../../../core/access/records.ts'
import { KnownError } from '../../../errors.ts'
import type { AccessChange, AccessQuery, AccessRecords, AccessState } from '../../contract/access.ts'
import {
  type DatabaseRow,
  readJson,
  readNumber,
  readNumberOrNull,
  readText,
  readTextOrNull,
} from './row-values.ts'

export function toAccessState(row: DatabaseRow): AccessState {
  return {
    version: readNumber(row, 'version'),
    epoch: readNumber(row, 'epoch'),
    initialisedAt: readNumberOrNull(row, 'initialised_at'),
    closedAt: readNumberOrNull(row, 'closed_at'),
    openBindingId: readTextOrNull(row, 'open_binding_id'),
  }
}

export function toNamespace(row: DatabaseRow): Namespace {
  return {
    name: readText(row, 'name'),
    description: readText(row, 'description'),
    keyTag: readText(row, 'key_tag'),
    createdAt: readNumber(row, 'created_at'),
    ...readQuota(row),
  }
}

const quotaColumns = {
  queuesMax: 'queues_max',
  itemsMax: 'items_max',
  bytesMax: 'bytes_max',
  requestsPerSecondMax: 'requests_max',
} as const satisfies Record<keyof Quota, string>

function readQuota(row: DatabaseRow): Readonly<{ quota?: Quota }> {
  const limits = Object.entries(quotaColumns).flatMap(([name, column]) => {
    const limit = readNumberOrNull(row, column)
    return limit === null ? [] : [[name, limit] as const]
  })
  return limits.length === 0 ? {} : { quota: Object.fromEntries(limits) }
}

/** In the order of the columns queues_max, items_max, bytes_max and requests_max. */
export function listLimits({ quota = {} }: Namespace): readonly (number | null)[] {
  const { queuesMax, itemsMax, bytesMax, requestsPerSecondMax } = quota
  return [queuesMax ?? null, itemsMax ?? null, bytesMax ?? null, requestsPerSecondMax ?? null]
}

export function toUser(row: DatabaseRow): User {
  return {
    id: readText(row, 'id'),
    username: readText(row, 'username'),
    email: readText(row, 'email'),
    externalId: readText(row, 'external_id'),
    createdAt: readNumber(row, 'created_at'),
    updatedAt: readNumber(row, 'updated_at'),
  }
}

export function toApiKey(row: DatabaseRow): ApiKey {
  return {
    id: readText(row, 'id'),
    userId: readText(row, 'user_id'),
    scope: readTextOrNull(row, 'scope'),
    name: readText(row, 'name'),
    prefix: readText(row, 'prefix'),
    expiresAt: readNumberOrNull(row, 'expires_at'),
    lastUsedAt: readNumberOrNull(row, 'last_used_at'),
    createdAt: readNumber(row, 'created_at'),
  }
}

/** A permission that only another version of the program knows is left out. */
export function toRole(row: DatabaseRow): Role {
  return {
    id: readText(row, 'id'),
    namespace: readText(row, 'namespace'),
    name: readText(row, 'name'),
    permissions: readJson<string[]>(row, 'permissions').filter(isPermission),
    createdAt: readNumber(row, 'created_at'),
  }
}

export function toRoleBinding(row: DatabaseRow): RoleBinding {
  return {
    id: readText(row, 'id'),
    namespace: readText(row, 'namespace'),
    userId: readText(row, 'user_id'),
    roleId: readText(row, 'role_id'),
    createdAt: readNumber(row, 'created_at'),
  }
}

export function toSession(row: DatabaseRow): Session {
  return {
    hash: readText(row, 'hash'),
    keyId: readText(row, 'key_id'),
    createdAt: readNumber(row, 'created_at'),
    expiresAt: readNumber(row, 'expires_at'),
  }
}

type AccessTable = Readonly<{
  table: string
  /** The column that orders the list. */
  order: string
  decode: (row: DatabaseRow) => AccessRecords[keyof AccessRecords]
}>

/** The table of each kind of record. */
export const accessTables: Readonly<Record<keyof AccessRecords, AccessTable>> = {
  namespaces: { table: 'namespaces', order: 'name', decode: toNamespace },
  users: { table: 'users', order: 'id', decode: toUser },
  'api-keys': { table: 'api_keys', order: 'id', decode: toApiKey },
  roles: { table: 'roles', order: 'id', decode: toRole },
  'role-bindings': { table: 'role_bindings', order: 'id', decode: toRoleBinding },
}

const columns = {
  id: 'id',
  name: 'name',
  username: 'username',
  userId: 'user_id',
  roleId: 'role_id',
  namespace: 'namespace',
  prefix: 'prefix',
} as const

/** The conditions of a query, as columns with the value that each must have. */
export function readConditions(query: AccessQuery): readonly Readonly<{ column: string; value: string }>[] {
  return Object.entries(columns).flatMap(([field, column]) => {
    const value = (query as Readonly<Record<string, unknown>>)[field]
    return typeof value === 'string' ? [{ column, value }] : []
  })
}

/** New users, keys, roles and namespaces allow no existing credential more or less. */
const harmless: ReadonlySet<AccessChange['change']> = new Set(['put-namespace', 'put-user', 'create-api-key'])

export function changesCredentials(changes: readonly AccessChange[]): boolean {
  return changes.some(({ change }) => !harmless.has(change))
}

export function accessChanged(version: number): KnownError {
  return new KnownError('ACCESS_CHANGED', `access was changed by another request after version ${version}`)
}

export function namespaceInUse(name: string): KnownError {
  return new KnownError('NAMESPACE_IN_USE', `namespace has queues; '${name}' has queues, delete queues first`)
}

/** `count`: the number of queues that the namespace has. */
export function checkQueueQuota(name: string, queuesMax: number, count: number): void {
  if (count < queuesMax) return
  throw new KnownError(
    'QUOTA_EXCEEDED',
    `namespace ${name} has ${count} queues, and its quota is ${queuesMax} queues`,
  )
}

export function namespaceNotFound(name: string): KnownError {
  return new KnownError('NAMESPACE_NOT_FOUND', `namespace does not exist; '${name}' was not found`)
}

export function keyNotFound(): KnownError {
  return new KnownError('API_KEY_NOT_FOUND', 'api key does not exist')
}
