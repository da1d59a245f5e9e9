import type { CredentialSource, Credentials } from '../storage/contract/credentials.ts'
import type { Notify } from './notify.ts'
import type { Secret } from './secret.ts'

export type PasswordCredentialsOptions = Readonly<{
  user: string
  readPassword: () => Promise<Secret>
  notify: Notify
}>

/**
 * A fixed user whose password is read again whenever it is asked for: after a refusal, the store asks
 * again and finds the one that was rotated meanwhile. Connections that are open stay valid, so nobody
 * has to be told.
 */
export function createPasswordCredentials(options: PasswordCredentialsOptions): CredentialSource {
  const { user, readPassword, notify } = options
  let known: Credentials | undefined

  return {
    current: async () => {
      try {
        known = { user, password: (await readPassword()).reveal() }
      } catch (error) {
        if (known === undefined) throw error
        const why = error instanceof Error ? error.message : String(error)
        notify('warn', `the store's password cannot be read again, the last one is used: ${why}`)
      }
      return known
    },
    onReplaced: () => () => {},
    close: async () => {},
  }
}
