import type { Clock } from '../core/instant.ts'
import type { CredentialSource } from './contract/credentials.ts'
import type { Storage } from './contract/storage.ts'
import { openSqlite } from './sqlite/sqlite-storage.ts'

/** The store to open, parsed from the `store` setting. */
export type StoreTarget =
  | Readonly<{ kind: 'sqlite'; path: string }>
  | Readonly<{ kind: 'memory' }>
  | Readonly<{ kind: 'postgres'; url: string; credentials?: CredentialSource }>

export type StoreOptions = Readonly<{
  clock?: Clock
  random?: () => number
  /** `normal` is faster, but can lose the last commits in a power failure. The default is `full`. */
  sqliteSynchronous?: 'full' | 'normal'
  postgresPoolMax?: number
  postgresConnectTimeoutMs?: number
}>

/** Opens a store. The only function that names the backends. */
export async function openStorage(target: StoreTarget, options: StoreOptions = {}): Promise<Storage> {
  if (target.kind !== 'postgres') return openSqlite(target, options)
  // Imported on demand, so that a server on SQLite does not load the PostgreSQL driver.
  const { openPostgres } = await import('./postgres/postgres-storage.ts')
  return openPostgres(target, options)
}
