import type { AccessChange, ChangeAccess, CreateSession, RecordKeyUses } from '../../contract/access.ts'
import {
  accessChanged,
  changesCredentials,
  keyNotFound,
  listLimits,
  namespaceInUse,
} from '../../shared/rows/access-rows.ts'
import type { Connection, Row } from '../connection/connection.ts'
import { encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

/**
 * The row of the version is also the lock of all changes: a change that waits for another one finds another
 * version.
 */
const nextVersion = `update redrive.access_state set version = version + 1, epoch = epoch + $1
  where version = $2 returning version`

export async function changeAccess(
  { connection }: Transaction,
  { version, changes }: ChangeAccess,
): Promise<undefined> {
  const epochs = changesCredentials(changes) ? 1 : 0
  const rows = await connection.query({ text: nextVersion }, [epochs, version])
  if (rows.length === 0) throw accessChanged(version)
  for (const change of changes) await applyChange(connection, change)
}

async function applyChange(connection: Connection, change: AccessChange): Promise<void> {
  switch (change.change) {
    case 'put-namespace':
    case 'delete-namespace':
      return changeNamespace(connection, change)
    case 'put-user':
    case 'delete-user':
      return changeUser(connection, change)
    case 'create-api-key':
    case 'delete-api-key':
      return changeKey(connection, change)
    case 'put-role':
    case 'delete-role':
      return changeRole(connection, change)
    case 'create-role-binding':
    case 'delete-role-binding':
      return changeBinding(connection, change)
    case 'delete-session':
      await run(connection, 'delete from redrive.sessions where hash = $1', [change.hash])
      return
    case 'set-state':
      return setState(connection, change)
  }
}

type Named<Suffix extends string> = Extract<AccessChange, { change: `${string}-${Suffix}` }>

async function changeNamespace(connection: Connection, change: Named<'namespace'>): Promise<void> {
  if (change.change === 'put-namespace') {
    const { name, description, keyTag, createdAt } = change.namespace
    await run(
      connection,
      `insert into redrive.namespaces
         (name, description, key_tag, created_at, queues_max, items_max, bytes_max, requests_max)
       values ($1, $2, $3, $4, $5, $6, $7, $8)
       on conflict (name) do update set description = excluded.description, key_tag = excluded.key_tag,
         queues_max = excluded.queues_max, items_max = excluded.items_max, bytes_max = excluded.bytes_max,
         requests_max = excluded.requests_max`,
      [name, description, keyTag, createdAt, ...listLimits(change.namespace)],
    )
    return
  }
  const { name } = change
  // The lock on queue definitions (write.ts) keeps other servers from creating a queue now.
  const [queue] = await run(connection, 'select from redrive.queues where namespace = $1 limit 1', [name])
  if (queue !== undefined) throw namespaceInUse(name)
  // A namespace with this name that is created later must not get the alerts of this one.
  await run(connection, 'delete from redrive.alerts where namespace = $1', [name])
  await run(connection, 'delete from redrive.alert_configs where namespace = $1', [name])
  await run(connection, 'delete from redrive.namespaces where name = $1', [name])
}

async function changeUser(connection: Connection, change: Named<'user'>): Promise<void> {
  if (change.change === 'put-user') {
    const { id, username, email, externalId, createdAt, updatedAt } = change.user
    await run(
      connection,
      `insert into redrive.users (id, username, email, external_id, created_at, updated_at)
       values ($1, $2, $3, $4, $5, $6)
       on conflict (id) do update set username = excluded.username, email = excluded.email,
         external_id = excluded.external_id, updated_at = excluded.updated_at`,
      [id, username, email, externalId, createdAt, updatedAt],
    )
    return
  }
  const { id } = change
  await run(
    connection,
    'delete from redrive.sessions where key_id in (select id from redrive.api_keys where user_id = $1)',
    [id],
  )
  await run(connection, 'delete from redrive.api_keys where user_id = $1', [id])
  await run(connection, 'delete from redrive.role_bindings where user_id = $1', [id])
  await run(connection, 'delete from redrive.users where id = $1', [id])
}

async function changeKey(connection: Connection, change: Named<'api-key'>): Promise<void> {
  if (change.change === 'create-api-key') {
    const { id, userId, scope, name, prefix, expiresAt, lastUsedAt, createdAt } = change.key
    await run(
      connection,
      `insert into redrive.api_keys
         (id, user_id, scope, name, prefix, hash, expires_at, last_used_at, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [id, userId, scope, name, prefix, change.hash, expiresAt, lastUsedAt, createdAt],
    )
    return
  }
  await run(connection, 'delete from redrive.sessions where key_id = $1', [change.id])
  await run(connection, 'delete from redrive.api_keys where id = $1', [change.id])
}

async function changeRole(connection: Connection, change: Named<'role'>): Promise<void> {
  if (change.change === 'put-role') {
    const { id, namespace, name, permissions, createdAt } = change.role
    await run(
      connection,
      `insert into redrive.roles (id, namespace, name, permissions, created_at) values ($1, $2, $3, $4, $5)
       on conflict (id) do update set permissions = excluded.permissions`,
      [id, namespace, name, JSON.stringify(permissions), createdAt],
    )
    return
  }
  await run(connection, 'delete from redrive.roles where id = $1', [change.id])
}

async function changeBinding(connection: Connection, change: Named<'role-binding'>): Promise<void> {
  if (change.change === 'create-role-binding') {
    const { id, namespace, userId, roleId, createdAt } = change.binding
    await run(
      connection,
      `insert into redrive.role_bindings (id, namespace, user_id, role_id, created_at)
       values ($1, $2, $3, $4, $5)`,
      [id, namespace, userId, roleId, createdAt],
    )
    return
  }
  await run(connection, 'delete from redrive.role_bindings where id = $1', [change.id])
}

const stateColumns = {
  initialisedAt: 'initialised_at',
  closedAt: 'closed_at',
  openBindingId: 'open_binding_id',
} as const

async function setState(
  connection: Connection,
  change: Extract<AccessChange, { change: 'set-state' }>,
): Promise<void> {
  for (const [field, column] of Object.entries(stateColumns)) {
    const value = change[field as keyof typeof stateColumns]
    if (value !== undefined) await run(connection, `update redrive.access_state set ${column} = $1`, [value])
  }
}

/** In the order of the ids, so that two servers that record at the same time do not wait in a circle. */
const recordUses = `update redrive.api_keys k set last_used_at = u.at
  from (
    select k.id, w.at from unnest($1::text[], $2::int8[]) as w(id, at) join redrive.api_keys k on k.id = w.id
    order by k.id for no key update of k
  ) u
  where k.id = u.id and (k.last_used_at is null or k.last_used_at < u.at)`

export async function recordKeyUses(
  { connection }: Transaction,
  { uses }: RecordKeyUses,
): Promise<undefined> {
  await run(connection, recordUses, [
    encodeTexts(uses.map(({ keyId }) => keyId)),
    encodeInt8s(uses.map(({ at }) => at)),
  ])
}

export async function createSession(
  { connection }: Transaction,
  { session, now }: CreateSession,
): Promise<undefined> {
  await run(connection, 'delete from redrive.sessions where expires_at <= $1', [now])
  const created = await run(
    connection,
    `insert into redrive.sessions (hash, key_id, created_at, expires_at)
     select $1, id, $2, $3 from redrive.api_keys where id = $4 returning hash`,
    [session.hash, session.createdAt, session.expiresAt, session.keyId],
  )
  if (created.length === 0) throw keyNotFound()
}

function run(connection: Connection, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
  return connection.query({ text }, [...values])
}
