/** What the tests need of a Vault, so that they can be run against the stand-in and against a real one. */
export interface VaultUnderTest {
  readonly address: string
  /** A token that may do everything. */
  readonly rootToken: string
  /** A secret at `secret/<path>`. */
  putKv(path: string, values: Readonly<Record<string, string>>): Promise<void>
  /** A token that may read `secret/` and lease from `database/`, with an end. */
  createToken(ttlSeconds: number): Promise<string>
  revokeToken(token: string): Promise<void>
  createAppRole(tokenTtlSeconds: number, tokenMaxTtlSeconds: number): Promise<AppRole>
  /**
   * `database/creds/<name>`, which makes users of the database that this Vault was started with. They act as
   * the role `owner`, if one is given.
   */
  createDatabaseRole(name: string, ttlSeconds: number, maxTtlSeconds: number, owner?: string): Promise<void>
  stop(): Promise<void>
}

export type AppRole = Readonly<{ roleId: string; secretId: string }>
