import type { Clock } from '../core/time/instant.ts'
import type { CredentialSource } from './contract/credentials.ts'
import type { Storage, StoreReads } from './contract/storage.ts'
import type { TlsSource } from './contract/tls.ts'
import { openSqlite, openSqliteToRead } from './sqlite/sqlite-storage.ts'

/** The store to open, parsed from the `store` setting. */
export type StoreTarget =
  | Readonly<{ kind: 'sqlite'; path: string }>
  | Readonly<{ kind: 'memory' }>
  | Readonly<{ kind: 'postgres'; url: string; credentials?: CredentialSource; tls?: TlsSource }>

export type StoreOptions = Readonly<{
  /** The clock of this machine. A SQLite store goes by it; PostgreSQL only compares it with its own. */
  machineClock?: Clock
  /** For tests: the store goes by this clock alone. */
  clock?: Clock
  random?: () => number
  /** `normal` is faster, but can lose the last commits in a power failure. The default is `full`. */
  sqliteSynchronous?: 'full' | 'normal'
  /** How long to wait for a file that another server has open. The default is 0: refuse immediately. */
  sqliteLockWaitMs?: number
  postgresPoolMax?: number
  postgresConnectTimeoutMs?: number
  /** The number of idle connections that stay open. */
  postgresIdleMax?: number
  /** How long a connection is used before it is replaced; 0: without limit. */
  postgresLifetimeMs?: number
  /**
   * Only PostgreSQL: the store checks its schema instead of updating it, needs no permission to write, and
   * rejects every write with READ_ONLY.
   */
  isReadOnly?: boolean
  /** Refuse a store that does not exist with STORE_MISSING, instead of creating it. */
  mustExist?: boolean
  /** Called when a new store was created. Not called for a store in memory. */
  onCreated?: () => void
}>

/** Opens a store, creates it if necessary, and updates its schema. */
export async function openStorage(target: StoreTarget, options: StoreOptions = {}): Promise<Storage> {
  if (target.kind !== 'postgres') return openSqlite(target, options)
  // Imported on demand, so that a server on SQLite does not load the PostgreSQL driver.
  const { openPostgres } = await import('./postgres/postgres-storage.ts')
  return openPostgres(target, options)
}

/**
 * Opens a store for reading. Changes nothing: no schema is created or updated. A SQLite file can be read
 * while a server has it open.
 */
export async function openStorageToRead(
  target: Exclude<StoreTarget, { kind: 'memory' }>,
  options: StoreOptions = {},
): Promise<StoreReads> {
  if (target.kind === 'sqlite') return openSqliteToRead(target)
  const { openPostgresToRead } = await import('./postgres/postgres-storage.ts')
  return openPostgresToRead(target, options)
}
