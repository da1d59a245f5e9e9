import { KnownError } from '../../../errors.ts'
import type { Database } from '../connection/database.ts'
import { foundation } from './0001_foundation.ts'

/** Marks a file as ours ("Rdrv"), so that another program's database is never migrated by mistake. */
const applicationId = 0x52647276

/** In order; the number of a migration is its place, from 1. */
const migrations = [{ name: '0001_foundation', sql: foundation }] as const

export function migrate(database: Database, path: string): void {
  const version = database.pragma('user_version')
  const owner = database.pragma('application_id')
  const tables = Number(database.all('select count(*) as n from sqlite_schema')[0]?.n ?? 0)
  if (owner !== applicationId && (owner !== 0 || tables > 0)) {
    throw new KnownError('STORE_NOT_OURS', `${path} is a SQLite database of another program`)
  }
  if (version > migrations.length) {
    throw new KnownError(
      'SCHEMA_NEWER',
      `${path} has schema version ${version}, this program knows versions up to ${migrations.length}`,
    )
  }
  for (const [index, migration] of migrations.entries()) {
    if (index < version) continue
    database.exec(`begin immediate; ${migration.sql}
      pragma application_id = ${applicationId}; pragma user_version = ${index + 1}; commit`)
  }
}
