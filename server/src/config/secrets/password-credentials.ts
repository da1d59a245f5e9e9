import type { CredentialSource, Credentials } from '../../storage/contract/credentials.ts'
import type { Notify } from '../notify.ts'
import type { Secret } from './secret.ts'

export type PasswordCredentialsOptions = Readonly<{
  user: string
  readPassword: () => Promise<Secret>
  notify: Notify
}>

/**
 * A fixed user whose password is read at each request: if the database rejects the password, the store
 * requests it again and gets the rotated one. Open connections stay valid, so there is no event for a new
 * password.
 */
export function createPasswordCredentials(options: PasswordCredentialsOptions): CredentialSource {
  const { user, readPassword, notify } = options
  let lastKnown: Credentials | undefined

  return {
    getCurrent: async () => {
      try {
        lastKnown = { user, password: (await readPassword()).reveal() }
      } catch (error) {
        if (lastKnown === undefined) throw error
        const reason = error instanceof Error ? error.message : String(error)
        notify('warn', `the store's password cannot be read; the last known password stays in use: ${reason}`)
      }
      return lastKnown
    },
    onReplaced: () => () => {},
    close: async () => {},
  }
}
