import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { KnownError } from '../../errors.ts'
import type { CredentialSource } from '../../storage/contract/credentials.ts'
import type { Notify } from '../notify.ts'
import type { Environment } from '../settings/environment.ts'
import type { Settings } from '../settings/settings.ts'
import { createVault, type Vault, type VaultLogin } from '../vault/vault.ts'
import { createDatabaseCredentials } from './database-credentials.ts'
import { Secret } from './secret.ts'
import { parseReference } from './secret-reference.ts'
import { systemTimers, type Timers } from './timers.ts'

export type SecretsOptions = Readonly<{
  settings: Settings
  environment: Environment
  /** The base of relative paths in `file:` references. */
  folder: string
  notify: Notify
  timers?: Timers
}>

export interface Secrets {
  /** Returns the current secret of a setting, which holds the secret itself or a reference. */
  read(given: Secret): Promise<Secret>
  /** Leases database credentials: `vault:<mount>/creds/<role>`. */
  openLeasedCredentials(reference: string): CredentialSource
  close(): Promise<void>
}

export function createSecrets(options: SecretsOptions): Secrets {
  const { settings, notify, timers = systemTimers } = options
  let vault: Vault | undefined

  const openVault = (): Vault => {
    vault ??= createVault({
      address: requireAddress(settings),
      namespace: settings['vault.namespace'],
      requestTimeoutMs: settings['vault.request_timeout'],
      kvMount: settings['vault.kv_mount'],
      login: chooseLogin(settings, readLocal),
      timers,
      notify,
    })
    return vault
  }

  /** Reads a secret without Vault, so that it can be used to log in to Vault. */
  const readLocal = async (given: Secret): Promise<Secret> => {
    const reference = parseReference(given.reveal())
    switch (reference?.kind) {
      case 'itself':
        return given
      case 'file':
        return readSecretFile(options.folder, reference.path)
      case 'env':
        return readVariable(options.environment, reference.name)
      default:
        throw new KnownError(
          'SETTING_INVALID',
          'vault.token and vault.secret_id cannot be vault: references, because they are needed to log in to Vault',
        )
    }
  }

  return {
    read: (given) => {
      const reference = parseReference(given.reveal())
      return reference?.kind === 'vault'
        ? openVault().readKv(reference.path, reference.key)
        : readLocal(given)
    },
    openLeasedCredentials: (reference) =>
      createDatabaseCredentials({
        vault: openVault(),
        path: reference.replace(/^vault:\/?/, ''),
        timers,
        notify,
      }),
    close: async () => vault?.close(),
  }
}

function requireAddress(settings: Settings): string {
  const address = settings['vault.address']
  if (address !== undefined) return address
  throw new KnownError('SETTING_INVALID', 'a vault: reference is used, but vault.address is not set')
}

function chooseLogin(settings: Settings, read: (given: Secret) => Promise<Secret>): VaultLogin {
  const token = settings['vault.token']
  const roleId = settings['vault.role_id']
  const secretId = settings['vault.secret_id']
  if (token !== undefined && roleId !== undefined) {
    throw new KnownError('SETTING_INVALID', 'vault.token and vault.role_id are both set: use one of them')
  }
  if (token !== undefined) return { kind: 'token', readToken: () => read(token) }
  if (roleId !== undefined && secretId !== undefined) {
    const mount = settings['vault.approle_mount']
    return { kind: 'approle', mount, roleId, readSecretId: () => read(secretId) }
  }
  throw new KnownError(
    'SETTING_INVALID',
    'a vault: reference is used, but neither vault.token nor vault.role_id with vault.secret_id is set',
  )
}

async function readSecretFile(folder: string, path: string): Promise<Secret> {
  const text = await readFile(resolve(folder, path), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new KnownError('SECRET_UNAVAILABLE', `the secret file ${path} cannot be read: ${error.code}`, error)
  })
  const value = text.replace(/\r?\n$/, '')
  if (value === '') throw new KnownError('SECRET_UNAVAILABLE', `the secret file ${path} is empty`)
  return new Secret(value)
}

function readVariable(environment: Environment, name: string): Secret {
  const value = environment[name]
  if (value) return new Secret(value)
  throw new KnownError(
    'SECRET_UNAVAILABLE',
    `the environment variable ${name} has no secret: it is not set or empty`,
  )
}
