export type Credentials = Readonly<{ user: string; password: string }>

/**
 * Where a store's user and password come from. They may change while the server runs: a password is
 * rotated, leased credentials come to the end of their lease.
 */
export interface CredentialSource {
  /** What a new connection must use. Ask again for every connection: an older answer may be refused. */
  current(): Promise<Credentials>

  /**
   * Tells when new credentials took the place of the old ones. The old ones still work then, and for a
   * while after, so that what is under way can finish. Returns the way to stop listening.
   */
  onReplaced(listener: (credentials: Credentials) => void): () => void

  /** Says that the store refused these. The next `current` then tries to get others. */
  rejected?(credentials: Credentials): void

  /** Gives back what is leased. Only after the last connection is closed. */
  close(): Promise<void>
}
