import type { AccessChange, ChangeAccess, CreateSession, RecordKeyUses } from '../../contract/access.ts'
import {
  accessChanged,
  changesCredentials,
  keyNotFound,
  listLimits,
  namespaceInUse,
} from '../../shared/rows/access-rows.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

const nextVersionSql = 'update access_state set version = version + 1, epoch = epoch + ? where version = ?'

export function changeAccess({ database }: Transaction, { version, changes }: ChangeAccess): undefined {
  const epochs = changesCredentials(changes) ? 1 : 0
  if (database.run(nextVersionSql, epochs, version) === 0) throw accessChanged(version)
  for (const change of changes) applyChange(database, change)
}

function applyChange(database: Database, change: AccessChange): void {
  switch (change.change) {
    case 'put-namespace':
    case 'delete-namespace':
      changeNamespace(database, change)
      break
    case 'put-user':
    case 'delete-user':
      changeUser(database, change)
      break
    case 'create-api-key':
    case 'delete-api-key':
      changeKey(database, change)
      break
    case 'put-role':
    case 'delete-role':
      changeRole(database, change)
      break
    case 'create-role-binding':
    case 'delete-role-binding':
      changeBinding(database, change)
      break
    case 'delete-session':
      database.run('delete from sessions where hash = ?', change.hash)
      break
    case 'set-state':
      setState(database, change)
  }
}

type Named<Suffix extends string> = Extract<AccessChange, { change: `${string}-${Suffix}` }>

function changeNamespace(database: Database, change: Named<'namespace'>): void {
  if (change.change === 'put-namespace') {
    const { name, description, keyTag, createdAt } = change.namespace
    database.run(
      `insert into namespaces
         (name, description, key_tag, created_at, queues_max, items_max, bytes_max, requests_max)
       values (?, ?, ?, ?, ?, ?, ?, ?)
       on conflict (name) do update set description = excluded.description, key_tag = excluded.key_tag,
         queues_max = excluded.queues_max, items_max = excluded.items_max, bytes_max = excluded.bytes_max,
         requests_max = excluded.requests_max`,
      name,
      description,
      keyTag,
      createdAt,
      ...listLimits(change.namespace),
    )
    return
  }
  const { name } = change
  const queue = database.get('select 1 from queues where namespace = ? limit 1', name)
  if (queue !== undefined) throw namespaceInUse(name)
  // A namespace with this name that is created later must not get the alerts of this one.
  database.run('delete from alerts where namespace = ?', name)
  database.run('delete from alert_configs where namespace = ?', name)
  database.run('delete from namespaces where name = ?', name)
}

function changeUser(database: Database, change: Named<'user'>): void {
  if (change.change === 'put-user') {
    const { id, username, email, externalId, createdAt, updatedAt } = change.user
    database.run(
      `insert into users (id, username, email, external_id, created_at, updated_at) values (?, ?, ?, ?, ?, ?)
       on conflict (id) do update set username = excluded.username, email = excluded.email,
         external_id = excluded.external_id, updated_at = excluded.updated_at`,
      id,
      username,
      email,
      externalId,
      createdAt,
      updatedAt,
    )
    return
  }
  const { id } = change
  database.run('delete from sessions where key_id in (select id from api_keys where user_id = ?)', id)
  database.run('delete from api_keys where user_id = ?', id)
  database.run('delete from role_bindings where user_id = ?', id)
  database.run('delete from users where id = ?', id)
}

function changeKey(database: Database, change: Named<'api-key'>): void {
  if (change.change === 'create-api-key') {
    const { id, userId, scope, name, prefix, expiresAt, lastUsedAt, createdAt } = change.key
    database.run(
      `insert into api_keys (id, user_id, scope, name, prefix, hash, expires_at, last_used_at, created_at)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      id,
      userId,
      scope,
      name,
      prefix,
      change.hash,
      expiresAt,
      lastUsedAt,
      createdAt,
    )
    return
  }
  database.run('delete from sessions where key_id = ?', change.id)
  database.run('delete from api_keys where id = ?', change.id)
}

function changeRole(database: Database, change: Named<'role'>): void {
  if (change.change === 'put-role') {
    const { id, namespace, name, permissions, createdAt } = change.role
    database.run(
      `insert into roles (id, namespace, name, permissions, created_at) values (?, ?, ?, ?, ?)
       on conflict (id) do update set permissions = excluded.permissions`,
      id,
      namespace,
      name,
      JSON.stringify(permissions),
      createdAt,
    )
    return
  }
  database.run('delete from roles where id = ?', change.id)
}

function changeBinding(database: Database, change: Named<'role-binding'>): void {
  if (change.change === 'create-role-binding') {
    const { id, namespace, userId, roleId, createdAt } = change.binding
    database.run(
      'insert into role_bindings (id, namespace, user_id, role_id, created_at) values (?, ?, ?, ?, ?)',
      id,
      namespace,
      userId,
      roleId,
      createdAt,
    )
    return
  }
  database.run('delete from role_bindings where id = ?', change.id)
}

const stateColumns = {
  initialisedAt: 'initialised_at',
  closedAt: 'closed_at',
  openBindingId: 'open_binding_id',
} as const

function setState(database: Database, change: Extract<AccessChange, { change: 'set-state' }>): void {
  for (const [field, column] of Object.entries(stateColumns)) {
    const value = change[field as keyof typeof stateColumns]
    if (value !== undefined) database.run(`update access_state set ${column} = ?`, value)
  }
}

const recordUseSql = `update api_keys set last_used_at = ?1
  where id = ?2 and (last_used_at is null or last_used_at < ?1)`

export function recordKeyUses({ database }: Transaction, { uses }: RecordKeyUses): undefined {
  for (const { keyId, at } of uses) database.run(recordUseSql, at, keyId)
}

export function createSession({ database }: Transaction, { session, now }: CreateSession): undefined {
  database.run('delete from sessions where expires_at <= ?', now)
  const created = database.run(
    `insert into sessions (hash, key_id, created_at, expires_at)
     select ?, id, ?, ? from api_keys where id = ?`,
    session.hash,
    session.createdAt,
    session.expiresAt,
    session.keyId,
  )
  if (created === 0) throw keyNotFound()
}
