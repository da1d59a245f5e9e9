import type { Clock } from '../core/instant.ts'
import type { CredentialSource } from './contract/credentials.ts'
import type { Storage } from './contract/storage.ts'
import { openSqlite } from './sqlite/sqlite-storage.ts'

/** Which store to open. Made from the `store` setting. */
export type StoreTarget =
  | Readonly<{ kind: 'sqlite'; path: string }>
  | Readonly<{ kind: 'memory' }>
  | Readonly<{ kind: 'postgres'; url: string; credentials?: CredentialSource }>

export type StoreOptions = Readonly<{
  clock?: Clock
  random?: () => number
  /** `normal` may lose the last commits when the power fails: faster, and never the default. */
  sqliteSynchronous?: 'full' | 'normal'
  postgresPoolMax?: number
  postgresConnectTimeoutMs?: number
}>

/** The one place that names the backends. */
export async function openStorage(target: StoreTarget, options: StoreOptions = {}): Promise<Storage> {
  if (target.kind !== 'postgres') return openSqlite(target, options)
  const { openPostgres } = await import('./postgres/postgres-storage.ts')
  return openPostgres(target, options)
}
