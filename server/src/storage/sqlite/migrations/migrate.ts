import { KnownError } from '../../../errors.ts'
import {
  type AppliedMigration,
  checkApplied,
  checkVersion,
  computeChecksum,
  createSchemaDiffersError,
  getMigrationSql,
  type Migration,
} from '../../shared/migrations.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { Database } from '../connection/database.ts'
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
import { auditReplace } from './0019_audit-replace.ts'

/** Marks a file as ours ("Rdrv"), so that another program's database is never migrated by mistake. */
const applicationId = 0x52647276

export const migrations: readonly Migration[] = [
  { name: '0001_foundation', sql: foundation },
  { name: '0002_dlq-statements', noChange: 'the schema dlq, for other programs, exists only on PostgreSQL' },
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
  { name: '0018_disk-reserve', noChange: 'a SQLite store reserves space with a file beside it' },
  { name: '0019_audit-replace', sql: auditReplace },
]

/** The record of the migrations that a file ran. It is created by this program, not by a migration. */
const recordTable = `create table if not exists migrations (
  number integer primary key, name text not null, checksum text not null) strict`

/** The schema of a file: the number of migrations it ran, and whether it has a record of them. */
export type SchemaState = Readonly<{ version: number; isRecorded: boolean }>

/** Applies the migrations that the file does not have yet. Refuses a file whose schema is not ours. */
export function migrate(database: Database, path: string, wanted = migrations): void {
  const { version, isRecorded } = checkSchema(database, path, wanted)
  if (!isRecorded && version > 0) {
    const records = wanted.slice(0, version).map((migration, index) => toRecord(index + 1, migration))
    database.exec(`begin immediate; ${recordTable}; ${records.join(';')}; commit`)
  }
  for (const [index, migration] of wanted.entries()) {
    if (index < version) continue
    database.exec(`begin immediate; ${getMigrationSql(migration)};
      ${recordTable}; ${toRecord(index + 1, migration)};
      pragma application_id = ${applicationId}; pragma user_version = ${index + 1}; commit`)
  }
}

/**
 * Refuses a file of another program, a newer one, and one whose migrations differ from those of this program.
 * `user_version` is the number of the last migration that the file ran. A file without a record of them is
 * accepted if it has the same tables and indexes as these migrations create. Changes nothing.
 */
export function checkSchema(database: Database, path: string, wanted = migrations): SchemaState {
  const version = database.readPragma('user_version')
  const owner = database.readPragma('application_id')
  const schema = readSchema(database)
  if (owner !== applicationId && (owner !== 0 || schema.size > 0)) {
    throw new KnownError('STORE_NOT_OURS', `${path} is a SQLite database of another program`)
  }
  checkVersion(version, wanted, path)
  const applied = readRecord(database)
  if (applied === undefined) {
    checkTables(schema, wanted.slice(0, version), path)
    return { version, isRecorded: false }
  }
  if (applied.length !== version) {
    const reason = `it has schema version ${version}, and a record of ${applied.length} migrations`
    throw createSchemaDiffersError(path, reason)
  }
  checkApplied(applied, wanted, path)
  return { version, isRecorded: true }
}

function toRecord(number: number, migration: Migration): string {
  return `insert into migrations (number, name, checksum) values (${number}, '${migration.name}', '${computeChecksum(migration)}')`
}

/** Undefined for a file that was created before migrations were recorded. */
function readRecord(database: Database): readonly AppliedMigration[] | undefined {
  if (database.get(`select 1 from sqlite_schema where name = 'migrations'`) === undefined) return undefined
  return database.all('select number, name, checksum from migrations order by number').map((row) => ({
    number: readNumber(row, 'number'),
    name: readText(row, 'name'),
    checksum: readText(row, 'checksum'),
  }))
}

function checkTables(actual: ReadonlyMap<string, string>, ran: readonly Migration[], path: string): void {
  const reference = new Database(':memory:')
  try {
    for (const migration of ran) reference.exec(getMigrationSql(migration))
    const expected = readSchema(reference)
    const names = new Set([...expected.keys(), ...actual.keys()])
    const differing = [...names].filter((name) => expected.get(name) !== actual.get(name))
    if (differing.length === 0) return
    const [first = ''] = differing
    const more = differing.length > 1 ? ` and ${differing.length - 1} more` : ''
    throw createSchemaDiffersError(
      path,
      `its ${first}${more} differ from those of ${ran.at(-1)?.name ?? 'a new store'}`,
    )
  } finally {
    reference.close()
  }
}

/** The SQL of each table, index and trigger by its kind and name, without comments and layout. */
function readSchema(database: Database): ReadonlyMap<string, string> {
  const rows = database.all(
    `select type, name, sql from sqlite_schema where sql is not null and name not like 'sqlite_%'`,
  )
  return new Map(
    rows.map((row) => [
      `${readText(row, 'type')} ${readText(row, 'name')}`,
      readText(row, 'sql').replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim(),
    ]),
  )
}
