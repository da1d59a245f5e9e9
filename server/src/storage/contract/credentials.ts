export type Credentials = Readonly<{ user: string; password: string }>

/**
 * Where a store gets its user and password. They can change while the server runs: a password is rotated, or
 * the lease of leased credentials ends.
 */
export interface CredentialSource {
  /**
   * The credentials for a new connection. Ask again for every connection: older credentials can be refused.
   */
  getCurrent(): Promise<Credentials>

  /**
   * Calls the listener when new credentials replace the old ones. The old credentials still work for a while,
   * so that work in progress can finish. Returns a function that stops listening.
   */
  onReplaced(listener: (credentials: Credentials) => void): () => void

  /** Reports that the store refused these credentials. The next `current` then tries to get others. */
  onRejected?(credentials: Credentials): void

  /** Revokes leased credentials. Call it only after the last connection is closed. */
  close(): Promise<void>
}
