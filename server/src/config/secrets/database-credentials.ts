import type { CredentialSource, Credentials } from '../../storage/contract/credentials.ts'
import type { Notify } from '../notify.ts'
import { isTemporary, type LeasedCredentials, toMessage, type Vault } from '../vault/vault.ts'
import { createVaultLeaseRenewer } from '../vault/vault-lease-renewer.ts'
import type { Timers } from './timers.ts'

export type DatabaseCredentialsOptions = Readonly<{
  vault: Vault
  /** `<mount>/creds/<role>` */
  path: string
  timers: Timers
  notify: Notify
}>

/**
 * `pass` renews or replaces the credentials if they are due. A timer calls it; tests can call it directly.
 */
export type DatabaseCredentials = CredentialSource &
  Required<Pick<CredentialSource, 'onRejected'>> & {
    pass(): Promise<void>
  }

/** Database credentials from Vault, which are renewed, and replaced before their lease ends. */
export function createDatabaseCredentials(options: DatabaseCredentialsOptions): DatabaseCredentials {
  const { vault, path, notify } = options
  const renewer = createVaultLeaseRenewer<LeasedCredentials>(
    {
      acquire: () => vault.leaseCredentials(path),
      renew: (grant) => vault.renewCredentials(grant),
      isTemporary,
      isEndingEarly: (leased) => vault.isFromOldToken(leased),
      isSame: (one, other) => one.user === other.user && one.leaseId === other.leaseId,
      onRenewalRefused: (error) =>
        notify(
          'info',
          `requesting new database credentials, because Vault does not renew the lease: ${toMessage(error)}`,
        ),
      onFailure: (error, isUsable) => {
        const consequence = isUsable ? 'the current ones stay in use' : 'there are no valid credentials'
        notify('warn', `Vault issued no new database credentials: ${toMessage(error)}; ${consequence}`)
      },
    },
    options.timers,
  )
  const stopWatchingToken = vault.onTokenReplaced(() => renewer.wake())
  renewer.onReplaced(({ user }) =>
    notify('info', `the database credentials were replaced; the new user is ${user}`),
  )

  return {
    getCurrent: async () => toCredentials(await renewer.current()),
    onReplaced: (listener) => renewer.onReplaced((leased) => listener(toCredentials(leased))),
    onRejected: ({ user }) => renewer.markRejected((leased) => leased.user === user),
    pass: () => renewer.pass(),
    close: async () => {
      stopWatchingToken()
      const leased = await renewer.close()
      if (leased === undefined) return
      // Optional: without revocation the lease ends at its deadline.
      await vault.revoke(leased.leaseId).catch(() => {})
    },
  }
}

function toCredentials(leased: LeasedCredentials): Credentials {
  return { user: leased.user, password: leased.password.reveal() }
}
