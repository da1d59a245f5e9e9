import { KnownError } from '../errors.ts'
import type { CredentialSource } from '../storage/contract/credentials.ts'
import type { StoreTarget } from '../storage/open-storage.ts'
import type { Notify } from './notify.ts'
import { createPasswordCredentials } from './password-credentials.ts'
import { Secret } from './secret.ts'
import { parseReference } from './secret-reference.ts'
import type { Secrets } from './secrets.ts'
import type { Settings } from './settings.ts'
import { type NamedStore, parseStore } from './store-target.ts'

type PostgresStore = Extract<NamedStore, { kind: 'postgres' }>

/**
 * The store that the settings name, with the way to its credentials. The URL it gives has no password
 * in it, and no user where the credentials name one: it can be shown.
 */
export async function openStoreTarget(
  settings: Settings,
  secrets: Secrets,
  notify: Notify,
): Promise<StoreTarget> {
  const store = await nameStore(settings.store, secrets)
  if (store.kind === 'postgres') return openPostgres(store, settings, secrets, notify)
  for (const name of ['store.password', 'store.credentials'] as const) {
    if (settings[name] === undefined) continue
    throw new KnownError('SETTING_INVALID', `${name} is set, but the store is not a PostgreSQL one`)
  }
  return store
}

async function nameStore(given: string, secrets: Secrets): Promise<NamedStore> {
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
  const credentials = chooseCredentials(store, settings, secrets, notify)
  if (credentials === undefined) return { kind: 'postgres', url: store.url.href }
  const url = new URL(store.url)
  url.username = ''
  url.searchParams.delete('user')
  return { kind: 'postgres', url: url.href, credentials }
}

function chooseCredentials(
  store: PostgresStore,
  settings: Settings,
  secrets: Secrets,
  notify: Notify,
): CredentialSource | undefined {
  const leased = settings['store.credentials']
  const password = settings['store.password'] ?? store.password
  const places = [leased, settings['store.password'], store.password].filter((place) => place !== undefined)
  if (places.length > 1) {
    throw new KnownError(
      'SETTING_INVALID',
      "the store's password is given in several places: use one of store.credentials, store.password and the URL",
    )
  }
  if (leased !== undefined) return secrets.leasedCredentials(leased)
  if (password === undefined) return undefined
  if (store.user === undefined) {
    throw new KnownError('STORE_URL_INVALID', `the store ${store.url.href} has a password but names no user`)
  }
  return createPasswordCredentials({ user: store.user, readPassword: () => secrets.read(password), notify })
}
