import { KnownError } from '../../../errors.ts'
import { type Migration, migrationSql } from '../../shared/migrations.ts'
import type { Database } from '../connection/database.ts'
import { foundation } from './0001_foundation.ts'

/** Marks a file as ours ("Rdrv"), so that another program's database is never migrated by mistake. */
const applicationId = 0x52647276

export const migrations: readonly Migration[] = [{ name: '0001_foundation', sql: foundation }]

/**
 * Applies the migrations that the file does not have yet. `user_version` is the number of the last one it
 * has.
 */
export function migrate(database: Database, path: string, wanted = migrations): void {
  const version = database.pragma('user_version')
  const owner = database.pragma('application_id')
  const tables = Number(database.all('select count(*) as n from sqlite_schema')[0]?.n ?? 0)
  if (owner !== applicationId && (owner !== 0 || tables > 0)) {
    throw new KnownError('STORE_NOT_OURS', `${path} is a SQLite database of another program`)
  }
  if (version > wanted.length) {
    throw new KnownError(
      'SCHEMA_NEWER',
      `${path} has schema version ${version}, this program knows versions up to ${wanted.length}`,
    )
  }
  for (const [index, migration] of wanted.entries()) {
    if (index < version) continue
    database.exec(`begin immediate; ${migrationSql(migration)};
      pragma application_id = ${applicationId}; pragma user_version = ${index + 1}; commit`)
  }
}
