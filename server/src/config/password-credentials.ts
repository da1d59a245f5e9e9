import type { CredentialSource, Credentials } from '../storage/credentials.ts'
import type { Notify } from './notify.ts'
import type { Secret } from './secret.ts'

export type PasswordCredentialsOptions = Readonly<{
  user: string
  readPassword: () => Promise<Secret>
  notify: Notify
}>

/**
 * A fixed user whose password is read again for every connection: one that was rotated is found by the
 * first connection that would have been refused.
 */
export function createPasswordCredentials(options: PasswordCredentialsOptions): CredentialSource {
  const { user, readPassword, notify } = options
  const listeners = new Set<(credentials: Credentials) => void>()
  let known: Credentials | undefined

  return {
    current: async () => {
      const previous = known
      try {
        known = { user, password: (await readPassword()).reveal() }
      } catch (error) {
        if (previous === undefined) throw error
        const why = error instanceof Error ? error.message : String(error)
        notify('warn', `the store's password cannot be read again, the last one is used: ${why}`)
        return previous
      }
      const fresh = known
      if (previous !== undefined && previous.password !== fresh.password) {
        for (const listener of listeners) listener(fresh)
      }
      return fresh
    },
    onReplaced: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: async () => listeners.clear(),
  }
}
