import { KnownError } from '../../errors.ts'
import type { CredentialSource } from '../../storage/contract/credentials.ts'
import { removeTlsParameters } from '../../storage/contract/tls.ts'
import type { StoreTarget } from '../../storage/open-storage.ts'
import type { Notify } from '../notify.ts'
import { createPasswordCredentials } from '../secrets/password-credentials.ts'
import { Secret } from '../secrets/secret.ts'
import { parseReference } from '../secrets/secret-reference.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Settings } from '../settings/settings.ts'
import { type NamedStore, parseStore } from './store-target.ts'
import { chooseTls } from './store-tls.ts'

const postgresSettings = [
  'store.password',
  'store.credentials',
  'store.sslmode',
  'store.sslrootcert',
  'store.sslcert',
  'store.sslkey',
] as const

type PostgresStore = Extract<NamedStore, { kind: 'postgres' }>

/**
 * Returns the store of the settings and the source of its credentials. The URL contains no password, and no
 * user if the credentials have one, so it can be logged.
 */
export async function openStoreTarget(
  settings: Settings,
  secrets: Secrets,
  notify: Notify,
): Promise<StoreTarget> {
  const store = await readNamedStore(settings.store, secrets)
  if (store.kind === 'postgres') return openPostgres(store, settings, secrets, notify)
  for (const name of postgresSettings) {
    if (settings[name] === undefined) continue
    throw new KnownError('SETTING_INVALID', `${name} is set, but the store is not PostgreSQL`)
  }
  if (settings.read_only)
    throw new KnownError('SETTING_INVALID', 'read_only is set, but the store is not PostgreSQL')
  return store
}

async function readNamedStore(given: string, secrets: Secrets): Promise<NamedStore> {
  const reference = parseReference(given)
  if (reference === undefined || reference.kind === 'itself') return parseStore(given)
  const text = await secrets.read(new Secret(given))
  return parseStore(text.reveal(), given)
}

function openPostgres(
  store: PostgresStore,
  settings: Settings,
  secrets: Secrets,
  notify: Notify,
): StoreTarget {
  const tls = chooseTls(store.url, settings, secrets, notify)
  const url = tls === undefined ? new URL(store.url) : removeTlsParameters(store.url)
  const credentials = chooseCredentials(store, settings, secrets, notify)
  if (credentials !== undefined) {
    url.username = ''
    url.searchParams.delete('user')
  }
  return { kind: 'postgres', url: url.href, ...(credentials && { credentials }), ...(tls && { tls }) }
}

function chooseCredentials(
  store: PostgresStore,
  settings: Settings,
  secrets: Secrets,
  notify: Notify,
): CredentialSource | undefined {
  const leased = settings['store.credentials']
  const password = settings['store.password'] ?? store.password
  const given = [leased, settings['store.password'], store.password].filter((source) => source !== undefined)
  if (given.length > 1) {
    throw new KnownError(
      'SETTING_INVALID',
      "the store's password is set more than once: use only one of store.credentials, store.password and the URL",
    )
  }
  if (leased !== undefined) return secrets.openLeasedCredentials(leased)
  if (password === undefined) return undefined
  if (store.user === undefined) {
    throw new KnownError('STORE_URL_INVALID', `the store ${store.url.href} has a password but no user`)
  }
  return createPasswordCredentials({ user: store.user, readPassword: () => secrets.read(password), notify })
}
