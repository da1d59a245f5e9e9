import { type Stats, statSync } from 'node:fs'
import { KnownError } from '../../../errors.ts'
import { checkCurrent } from '../../shared/migrations.ts'
import { checkSchema, migrate, migrations } from '../migrations/migrate.ts'
import { Database } from './database.ts'
import { toKnownError } from './errors.ts'

/**
 * Opens the writing connection and migrates the schema. With `full`, every commit is on disk before it
 * returns.
 */
export function openFile(path: string, synchronous: 'full' | 'normal'): Database {
  const database = new Database(path)
  try {
    database.exec(`pragma journal_mode = wal; pragma synchronous = ${synchronous}; pragma foreign_keys = on;
      pragma cache_size = -65536; pragma temp_store = memory; pragma journal_size_limit = 134217728`)
    migrate(database, path)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Refuses a file that cannot be read as it is. Changes nothing, and needs no lock. */
export function checkReadable(path: string): void {
  const database = new Database(path, { isReadOnly: true })
  try {
    checkCurrent(checkSchema(database, path).version, migrations, path)
  } finally {
    database.close()
  }
}

export type FileLock = Readonly<{ release(): void }>

/**
 * Locks the file for one server. The lock is SQLite's exclusive lock on a second file beside it: the system
 * releases it when the process ends for any reason, so there is never a stale lock. A server that
 * is stopping, or was killed during a large write, has it a little longer: wait for it up to `waitMs`.
 */
export function lockFile(path: string, waitMs: number): FileLock {
  const file = readStats(path)
  if (file?.isDirectory()) {
    throw new KnownError(
      'STORE_UNWRITABLE',
      `${path} is a folder; give the path of a file, such as ${path}/redrive.db`,
    )
  }
  // SQLite keeps the WAL beside the name by which the file was opened: writers that use two names corrupt the
  // file.
  if (file !== undefined && file.nlink > 1) {
    throw new KnownError(
      'STORE_LOCKED',
      `${path} has ${file.nlink} names (hard links); another server may use the other`,
    )
  }
  const lock = new Database(`${path}.lock`)
  try {
    lock.exec(`pragma busy_timeout = ${waitMs}; pragma journal_mode = memory; begin exclusive`)
  } catch (error) {
    lock.close()
    if (error instanceof KnownError && error.code === 'STORE_LOCKED') {
      throw new KnownError('STORE_LOCKED', describeLock(path, waitMs), error)
    }
    throw error
  }
  return { release: () => lock.close() }
}

function describeLock(path: string, waitMs: number): string {
  const waited = waitMs > 0 ? ` and did not close it within ${waitMs / 1_000} s` : ''
  return `another server has ${path} open${waited}`
}

function readStats(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw toKnownError(error, path)
  }
}
