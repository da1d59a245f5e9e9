import type { CredentialSource, Credentials } from '../storage/contract/credentials.ts'
import { createLeaseKeeper } from './lease-keeper.ts'
import type { Notify } from './notify.ts'
import type { Timers } from './timers.ts'
import { isTemporary, type LeasedCredentials, messageOf, type Vault } from './vault.ts'

export type DatabaseCredentialsOptions = Readonly<{
  vault: Vault
  /** `<mount>/creds/<role>` */
  path: string
  timers: Timers
  notify: Notify
}>

/** `pass` does what is due now: tests call it, otherwise a timer does. */
export type DatabaseCredentials = CredentialSource &
  Required<Pick<CredentialSource, 'rejected'>> & {
    pass(): Promise<void>
  }

/** Database credentials that Vault makes for us, kept alive, and replaced before their lease ends. */
export function createDatabaseCredentials(options: DatabaseCredentialsOptions): DatabaseCredentials {
  const { vault, path, notify } = options
  const keeper = createLeaseKeeper<LeasedCredentials>(
    {
      acquire: () => vault.leaseCredentials(path),
      renew: (grant) => vault.renewCredentials(grant),
      isTemporary,
      isDoomed: (leased) => vault.isFromOldToken(leased),
      isSame: (one, other) => one.user === other.user && one.leaseId === other.leaseId,
      onNotRenewed: (error) =>
        notify(
          'info',
          `new database credentials are taken, because the lease is not renewed: ${messageOf(error)}`,
        ),
      onTrouble: (error, isUsable) => {
        const rest = isUsable ? 'the present ones are used further' : 'there are none to use'
        notify('warn', `no new database credentials: ${messageOf(error)}; ${rest}`)
      },
    },
    options.timers,
  )
  const stopWatchingToken = vault.onTokenReplaced(() => keeper.wake())
  keeper.onReplaced(({ user }) =>
    notify('info', `the database credentials were replaced: the user is ${user} now`),
  )

  return {
    current: async () => plain(await keeper.current()),
    onReplaced: (listener) => keeper.onReplaced((leased) => listener(plain(leased))),
    rejected: ({ user }) => keeper.rejected((leased) => leased.user === user),
    pass: keeper.pass,
    close: async () => {
      stopWatchingToken()
      const leased = await keeper.close()
      if (leased === undefined) return
      // A courtesy: the lease ends by itself too, only later.
      await vault.revoke(leased.leaseId).catch(() => {})
    },
  }
}

function plain(leased: LeasedCredentials): Credentials {
  return { user: leased.user, password: leased.password.reveal() }
}
