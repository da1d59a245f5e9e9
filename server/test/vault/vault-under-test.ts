/** The interface of the tests to a Vault, so that they can run against the fake and against a real one. */
export interface VaultUnderTest {
  readonly address: string
  /** A token with all permissions. */
  readonly rootToken: string
  /** Writes a secret at `secret/<path>`. */
  putKv(path: string, values: Readonly<Record<string, string>>): Promise<void>
  /** Creates a token that can read `secret/` and lease from `database/`, and that ends. */
  createToken(ttlSeconds: number): Promise<string>
  revokeToken(token: string): Promise<void>
  createAppRole(tokenTtlSeconds: number, tokenMaxTtlSeconds: number): Promise<AppRole>
  /**
   * Adds `database/creds/<name>`, which creates users in the database that this Vault was started with. If
   * `owner` is given, these users act as that role.
   */
  createDatabaseRole(name: string, ttlSeconds: number, maxTtlSeconds: number, owner?: string): Promise<void>
  stop(): Promise<void>
}

export type AppRole = Readonly<{ roleId: string; secretId: string }>
