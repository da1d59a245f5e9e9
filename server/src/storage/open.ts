import type { Clock } from '../core/instant.ts'
import type { CredentialSource } from './credentials.ts'

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
