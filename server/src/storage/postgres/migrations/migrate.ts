import { KnownError } from '../../../errors.ts'
import {
  type AppliedMigration,
  checkApplied,
  checkCurrent,
  computeChecksum,
  getMigrationSql,
  type Migration,
} from '../../shared/migrations.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Row } from '../connection/connection.ts'
import { beginWrite, type Connections } from '../connection/connections.ts'
import { foundation } from './0001_foundation.ts'
import { arrivals } from './0003_arrivals.ts'
import { leaseCalls } from './0004_lease-calls.ts'
import { groupTemplates } from './0005_group-templates.ts'
import { findLetters } from './0006_find-letters.ts'
import { access } from './0007_access.ts'
import { auditChain } from './0008_audit-chain.ts'
import { webhooks } from './0009_webhooks.ts'
import { kafka } from './0010_kafka.ts'
import { namespaces } from './0011_namespaces.ts'
import { causes } from './0012_causes.ts'
import { deliveries } from './0013_deliveries.ts'
import { messagePruning } from './0014_message-pruning.ts'
import { workers } from './0015_workers.ts'
import { alerts } from './0016_alerts.ts'
import { queueDeletions } from './0017_queue-deletions.ts'
import { diskReserve } from './0018_disk-reserve.ts'
import { dlqStatements } from './dlq-statements.ts'

export const migrations: readonly Migration[] = [
  { name: '0001_foundation', sql: foundation },
  { name: '0002_dlq-statements', sql: dlqStatements },
  { name: '0003_arrivals', sql: arrivals },
  { name: '0004_lease-calls', sql: leaseCalls },
  { name: '0005_group-templates', sql: groupTemplates },
  { name: '0006_find-letters', sql: findLetters },
  { name: '0007_access', sql: access },
  { name: '0008_audit-chain', sql: auditChain },
  { name: '0009_webhooks', sql: webhooks },
  { name: '0010_kafka', sql: kafka },
  { name: '0011_namespaces', sql: namespaces },
  { name: '0012_causes', sql: causes },
  { name: '0013_deliveries', sql: deliveries },
  { name: '0014_message-pruning', sql: messagePruning },
  { name: '0015_workers', sql: workers },
  { name: '0016_alerts', sql: alerts },
  { name: '0017_queue-deletions', sql: queueDeletions },
  { name: '0018_disk-reserve', sql: diskReserve },
  { name: '0019_audit-replace', noChange: 'PostgreSQL has no statement that replaces a row' },
]

/** The oldest PostgreSQL that supports all our statements. */
const versionMin = 14

type MigrateOptions = Readonly<{
  wanted?: readonly Migration[]
  /** Refuse a database without our schema with STORE_MISSING. */
  mustExist?: boolean
}>

/**
 * Applies the migrations that the schema does not have yet. Many servers can call it at once: one of them
 * migrates, the others wait and find the migrations applied.
 */
export async function migrate(
  connections: Connections,
  { wanted = migrations, mustExist = false }: MigrateOptions = {},
): Promise<Readonly<{ isNew: boolean }>> {
  const { address } = connections
  await connections.use((connection) => checkServer(connection, address))
  const before = await connections.use((connection) => countApplied(connection, address, wanted))
  if (before === 0 && mustExist) throw storeMissing(address)
  if (before === wanted.length) return { isNew: false }
  return connections.transaction(beginWrite, async (connection) => {
    await connection.query({ text: 'set local lock_timeout = 0; set local statement_timeout = 0' })
    await connection.query({
      text: `select pg_advisory_xact_lock(hashtext('redrive migrate'))`,
      isLong: true,
    })
    const applied = await countApplied(connection, address, wanted)
    if (applied === 0) {
      await connection.query({
        text: `create schema if not exists redrive;
          create table redrive.migrations (
            number integer primary key, name text not null, checksum text not null, applied_at timestamptz not null
          )`,
      })
    }
    for (const [index, migration] of wanted.entries()) {
      if (index >= applied) await apply(connection, index + 1, migration)
    }
    return { isNew: applied === 0 }
  })
}

/** Refuses a schema that cannot be read as it is. Changes nothing. */
export async function checkReadable(connections: Connections): Promise<void> {
  const { address } = connections
  await connections.use((connection) => checkServer(connection, address))
  const applied = await connections.use((connection) => countApplied(connection, address, migrations))
  if (applied === 0) throw storeMissing(address)
  checkCurrent(applied, migrations, address)
}

function storeMissing(address: string): KnownError {
  return new KnownError('STORE_MISSING', `${address} has no schema named redrive`)
}

async function apply(connection: Connection, number: number, migration: Migration): Promise<void> {
  const text = getMigrationSql(migration)
  if (text !== '') await connection.query({ text, isLong: true })
  await connection.query(
    {
      text: 'insert into redrive.migrations (number, name, checksum, applied_at) values ($1, $2, $3, now())',
    },
    [number, migration.name, computeChecksum(migration)],
  )
}

/** Refuses a PostgreSQL that is too old, or whose encoding cannot store every text. */
async function checkServer(connection: Connection, place: string): Promise<void> {
  const [row = {}] = await connection.query({
    text: `select current_setting('server_version_num')::int4 as version, current_setting('server_encoding') as encoding`,
  })
  const version = Math.floor(readNumber(row, 'version') / 10_000)
  if (version < versionMin) {
    throw new KnownError(
      'STORE_REFUSED',
      `${place} is version ${version}; Redrive needs ${versionMin} or newer`,
    )
  }
  const encoding = readText(row, 'encoding')
  if (encoding !== 'UTF8') {
    throw new KnownError('STORE_REFUSED', `${place} keeps text as ${encoding}; Redrive needs a UTF8 database`)
  }
}

/**
 * How many of the wanted migrations the schema has: 0 if there is no schema, or an empty one that was created
 * for Redrive. Refuses a schema of another program, one that is newer, and one whose migrations differ.
 */
async function countApplied(
  connection: Connection,
  place: string,
  wanted: readonly Migration[],
): Promise<number> {
  const owner = await findOwner(connection)
  if (owner === 'another program') {
    throw new KnownError(
      'STORE_NOT_OURS',
      `${place} has a schema named redrive that was not created by Redrive`,
    )
  }
  if (owner === 'nobody') return 0
  const rows = await connection.query({
    text: 'select number, name, checksum from redrive.migrations order by number',
  })
  checkApplied(rows.map(toAppliedMigration), wanted, place)
  return rows.length
}

async function findOwner(connection: Connection): Promise<'Redrive' | 'another program' | 'nobody'> {
  const [schema] = await connection.query({
    text: `select to_regclass('redrive.migrations') is not null as is_ours,
      exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'redrive') as is_used`,
  })
  if (schema?.is_ours !== true) return schema?.is_used === true ? 'another program' : 'nobody'
  const [shape] = await connection.query({
    text: `select count(*) as n from information_schema.columns where table_schema = 'redrive'
      and table_name = 'migrations' and column_name in ('number', 'name', 'checksum', 'applied_at')`,
  })
  return shape?.n === 4 ? 'Redrive' : 'another program'
}

function toAppliedMigration(row: Row): AppliedMigration {
  return {
    number: readNumber(row, 'number'),
    name: readText(row, 'name'),
    checksum: readText(row, 'checksum'),
  }
}
