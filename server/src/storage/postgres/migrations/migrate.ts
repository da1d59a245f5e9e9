import { createHash } from 'node:crypto'
import { KnownError } from '../../../errors.ts'
import { beginWrite, type Connection, type Connections } from '../connection/connections.ts'
import { foundation } from './0001_foundation.ts'

/** In order; the number of a migration is its place, from 1. */
const migrations = [{ name: '0001_foundation', sql: foundation }] as const

const versionMin = 14

/** The oldest PostgreSQL that has what the statements use, and the only encoding that keeps every text. */
async function checkServer(connection: Connection, place: string): Promise<void> {
  const [row] = await connection.query({
    text: `select current_setting('server_version_num')::int4 as version, current_setting('server_encoding') as encoding`,
  })
  const version = Math.floor((row?.version as number) / 10_000)
  if (version < versionMin) {
    throw new KnownError(
      'STORE_REFUSED',
      `${place} is version ${version}; Redrive needs ${versionMin} or newer`,
    )
  }
  if (row?.encoding !== 'UTF8') {
    throw new KnownError(
      'STORE_REFUSED',
      `${place} keeps text as ${row?.encoding}; Redrive needs a UTF8 database`,
    )
  }
}

/** Safe to run by many servers at once: one does the work, the others wait and find it done. */
export async function migrate(connections: Connections): Promise<void> {
  const { place } = connections
  await connections.use(async (connection) => checkServer(connection, place))
  if ((await connections.use((connection) => appliedCount(connection, place))) === migrations.length) return
  await connections.transaction(beginWrite, async (connection) => {
    await connection.query({ text: 'set local lock_timeout = 0; set local statement_timeout = 0' })
    await connection.query({
      text: `select pg_advisory_xact_lock(hashtext('redrive migrate'))`,
      isLong: true,
    })
    const applied = await appliedCount(connection, place)
    if (applied === 0) {
      await connection.query({
        text: `create schema if not exists redrive;
          create table redrive.migrations (
            number integer primary key, name text not null, checksum text not null, applied_at timestamptz not null
          )`,
      })
    }
    for (const [index, migration] of migrations.entries()) {
      if (index < applied) continue
      await connection.query({ text: migration.sql, isLong: true })
      await connection.query(
        {
          text: 'insert into redrive.migrations (number, name, checksum, applied_at) values ($1, $2, $3, now())',
        },
        [index + 1, migration.name, checksumOf(migration.sql)],
      )
    }
  })
}

/** How many migrations the schema has had: 0 when there is none, or an empty one made for us. */
async function appliedCount(connection: Connection, place: string): Promise<number> {
  const [schema] = await connection.query({
    text: `select to_regclass('redrive.migrations') is not null as is_ours,
      exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'redrive') as is_used`,
  })
  const notOurs = (why: string) =>
    new KnownError('STORE_NOT_OURS', `${place} has a schema named redrive ${why}`)
  if (schema?.is_ours !== true) {
    if (schema?.is_used === true) throw notOurs('that was not made by Redrive')
    return 0
  }
  const [shape] = await connection.query({
    text: `select count(*) as n from information_schema.columns where table_schema = 'redrive'
      and table_name = 'migrations' and column_name in ('number', 'name', 'checksum', 'applied_at')`,
  })
  if (shape?.n !== 4) throw notOurs('that was not made by Redrive')
  const rows = await connection.query({
    text: 'select number, name, checksum from redrive.migrations order by number',
  })
  if (rows.length > migrations.length) {
    throw new KnownError(
      'SCHEMA_NEWER',
      `${place} has schema version ${rows.length}, this program knows versions up to ${migrations.length}`,
    )
  }
  for (const [index, row] of rows.entries()) {
    const migration = migrations[index]
    if (migration === undefined || row.number !== index + 1)
      throw notOurs('whose migrations are out of order')
    if (row.name === migration.name && row.checksum === checksumOf(migration.sql)) continue
    throw notOurs(`whose migration ${row.name} differs from this program's ${migration.name}`)
  }
  return rows.length
}

function checksumOf(sql: string): string {
  return createHash('sha256').update(sql).digest('hex')
}
