import { type Stats, statSync } from 'node:fs'
import { KnownError } from '../../../errors.ts'
import { migrate } from '../migrations/migrate.ts'
import { Database } from './database.ts'
import { toKnownError } from './errors.ts'

/** Opens the writing connection: the schema is up to date, and every commit is on disk before it returns. */
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

/**
 * Holds the file for one server. The lock is SQLite's own exclusive lock on a file beside it: the
 * system gives it up when the process ends, however it ends, so nothing stale can be left behind.
 */
export function lockFile(path: string): { release(): void } {
  const file = look(path)
  if (file?.isDirectory()) {
    throw new KnownError(
      'STORE_UNWRITABLE',
      `${path} is a folder; give the path of a file, such as ${path}/redrive.db`,
    )
  }
  // SQLite keeps its log beside the name it was opened by: two names of one file destroy each other.
  if (file !== undefined && file.nlink > 1) {
    throw new KnownError(
      'STORE_LOCKED',
      `${path} has ${file.nlink} names (hard links); another server may use the other`,
    )
  }
  const lock = new Database(`${path}.lock`)
  try {
    lock.exec('pragma busy_timeout = 0; pragma journal_mode = memory; begin exclusive')
  } catch (error) {
    lock.close()
    if (error instanceof KnownError && error.code === 'STORE_LOCKED') {
      throw new KnownError('STORE_LOCKED', `another server has ${path} open`, error)
    }
    throw error
  }
  return { release: () => lock.close() }
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw toKnownError(error, path)
  }
}
