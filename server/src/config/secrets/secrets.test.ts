import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeVault, startFakeVault } from '../../../test/vault/fake-vault.ts'
import { createManualTimers } from '../../../test/vault/manual-timers.ts'
import { KnownError } from '../../errors.ts'
import type { StoreTarget } from '../../storage/open-storage.ts'
import { loadSettings } from '../settings/load-settings.ts'
import type { SettingName, Settings } from '../settings/settings.ts'
import { openStoreTarget } from '../store/open-store-target.ts'
import { Secret } from './secret.ts'
import { createSecrets, type Secrets } from './secrets.ts'

type Flags = Partial<Record<SettingName, string>>

const timers = createManualTimers()
let folder: string
let vault: FakeVault

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-secrets-'))
  writeFileSync(join(folder, 'token'), 'from-file\n')
  writeFileSync(join(folder, 'windows'), 'from-windows\r\n')
  writeFileSync(join(folder, 'spaces'), ' kept \n\n')
  writeFileSync(join(folder, 'empty'), '\n')
  vault = await startFakeVault(timers)
  await vault.putKv('team/db', { password: 'from-vault', url: 'postgres://app:hush@db/queues' })
  await vault.createDatabaseRole('rw', 3_600, 7_200)
})
afterAll(async () => {
  await vault.stop()
  rmSync(folder, { recursive: true })
})

function open(flags: Flags = {}): { secrets: Secrets; settings: Settings } {
  const { settings } = loadSettings({ flags, environment: {}, folder })
  const environment = { DB_PASSWORD: 'from-environment', EMPTY: '' }
  return { settings, secrets: createSecrets({ settings, environment, folder, notify: () => {}, timers }) }
}

function withVault(flags: Flags = {}): Flags {
  return { 'vault.address': vault.address, 'vault.token': vault.rootToken, ...flags }
}

async function read(text: string, flags: Flags = {}): Promise<string> {
  return (await open(flags).secrets.read(new Secret(text))).reveal()
}

async function openTarget(flags: Flags): Promise<StoreTarget> {
  const { settings, secrets } = open(flags)
  return openStoreTarget(settings, secrets, () => {})
}

async function readErrorMessage(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason) => reason,
  )
  if (error instanceof KnownError) return `${error.code}: ${error.message}`
  throw new Error(`not a KnownError: ${error}`)
}

describe('reading a secret', () => {
  it('a secret is given directly, or read from a file, a variable or Vault', async () => {
    expect(await read('plain')).toBe('plain')
    expect(await read('env:DB_PASSWORD')).toBe('from-environment')
    expect(await read(`file:${join(folder, 'token')}`)).toBe('from-file')
    expect(await read('file:token')).toBe('from-file')
    expect(await read('vault:secret/team/db#password', withVault())).toBe('from-vault')
    expect(await read('vault:secret/data/team/db#password', withVault())).toBe('from-vault')
  })

  it('one newline at the end of a secret file is removed, and nothing else', async () => {
    expect(await read('file:windows')).toBe('from-windows')
    expect(await read('file:spaces')).toBe(' kept \n')
  })

  it('the error for a missing secret names the file or the variable', async () => {
    expect(await readErrorMessage(read('file:gone'))).toBe(
      'SECRET_UNAVAILABLE: the secret file gone cannot be read: ENOENT',
    )
    expect(await readErrorMessage(read('file:empty'))).toContain('the secret file empty is empty')
    expect(await readErrorMessage(read('env:EMPTY'))).toContain(
      'the environment variable EMPTY has no secret',
    )
    expect(await readErrorMessage(read('env:GONE'))).toContain('the environment variable GONE has no secret')
  })

  it('the Vault token can be a reference to a file, but not to Vault', async () => {
    writeFileSync(join(folder, 'vault-token'), `${vault.rootToken}\n`)
    const fromFile = withVault({ 'vault.token': 'file:vault-token' })
    expect(await read('vault:secret/team/db#password', fromFile)).toBe('from-vault')
    const circular = withVault({ 'vault.token': 'vault:secret/team/db#token' })
    expect(await readErrorMessage(read('vault:secret/team/db#password', circular))).toContain(
      'SETTING_INVALID: vault.token and vault.secret_id cannot be vault: references',
    )
  })

  it('a secret is read from Vault with AppRole and without a token', async () => {
    const { roleId, secretId } = await vault.createAppRole(3_600, 7_200)
    const flags = { 'vault.address': vault.address, 'vault.role_id': roleId, 'vault.secret_id': secretId }
    expect(await read('vault:secret/team/db#password', flags)).toBe('from-vault')
  })

  it.each<[Flags, string]>([
    [{}, 'vault.address is not set'],
    [{ 'vault.address': 'http://127.0.0.1:1' }, 'neither vault.token nor vault.role_id'],
    [
      { 'vault.address': 'http://127.0.0.1:1', 'vault.role_id': 'x' },
      'neither vault.token nor vault.role_id',
    ],
    [
      { 'vault.address': 'http://127.0.0.1:1', 'vault.role_id': 'x', 'vault.token': 'x' },
      'vault.token and vault.role_id are both set',
    ],
  ])('a vault: reference with the settings %j is an error that contains "%s"', async (flags, expected) => {
    const message = await readErrorMessage(
      (async () => open(flags).secrets.read(new Secret('vault:secret/team/db#password')))(),
    )
    expect(message).toContain('SETTING_INVALID')
    expect(message).toContain(expected)
  })
})

describe('openStoreTarget', () => {
  it('a file or memory store needs no credentials', async () => {
    expect(await openTarget({ store: 'a.db' })).toEqual({ kind: 'sqlite', path: 'a.db' })
    expect(await openTarget({ store: ':memory:' })).toEqual({ kind: 'memory' })
  })

  it('a PostgreSQL store without a password has no credentials', async () => {
    expect(await openTarget({ store: 'postgres://app@db/queues' })).toEqual({
      kind: 'postgres',
      url: 'postgres://app@db/queues',
    })
  })

  it.each<[string, Flags, string]>([
    ['in the URL', { store: 'postgres://app:hush@db/queues' }, 'hush'],
    ['as a reference in the URL', { store: 'postgres://app:env:DB_PASSWORD@db/queues' }, 'from-environment'],
    ['as a setting', { store: 'postgres://app@db/queues', 'store.password': 'file:token' }, 'from-file'],
  ])('the password of a PostgreSQL store can be given %s', async (_, flags, password) => {
    const store = await openTarget(flags)
    if (store.kind !== 'postgres') throw new Error(store.kind)
    expect(store.url).toBe('postgres://db/queues')
    expect(await store.credentials?.getCurrent()).toEqual({ user: 'app', password })
  })

  it('the whole store can be a reference', async () => {
    const store = await openTarget(withVault({ store: 'vault:secret/team/db#url' }))
    if (store.kind !== 'postgres') throw new Error(store.kind)
    expect(store.url).toBe('postgres://db/queues')
    expect(await store.credentials?.getCurrent()).toEqual({ user: 'app', password: 'hush' })
  })

  it('an error for a store that was read from a reference shows only the reference', async () => {
    writeFileSync(join(folder, 'store-url'), 'mysql://app:hush@hidden/queues')
    const message = await readErrorMessage(openTarget({ store: 'file:store-url' }))
    expect(message).toContain('STORE_URL_INVALID: the store "file:store-url" cannot be used')
    expect(message).not.toMatch(/hush|hidden/)
  })

  it('the credentials of a PostgreSQL store can be leased from Vault', async () => {
    const flags = withVault({ store: 'postgres://db/queues', 'store.credentials': 'vault:database/creds/rw' })
    const store = await openTarget(flags)
    if (store.kind !== 'postgres') throw new Error(store.kind)
    const { user } = (await store.credentials?.getCurrent()) ?? {}
    expect(user).toMatch(/^v-token-rw-/)
    await store.credentials?.close()
    expect(vault.liveUsers()).toEqual([])
  })

  it.each<[Flags, string]>([
    [
      { store: 'postgres://app:hush@db/queues', 'store.password': 'hush' },
      "SETTING_INVALID: the store's password is set more than once",
    ],
    [{ store: 'postgres://db/queues', 'store.password': 'hush' }, 'has a password but no user'],
    [{ store: 'a.db', 'store.password': 'hush' }, 'store.password is set, but the store is not PostgreSQL'],
    [{ store: 'a.db', 'store.credentials': 'vault:database/creds/rw' }, 'store.credentials is set, but'],
  ])('a store with the settings %j is rejected: %s', async (flags, expected) => {
    const message = await readErrorMessage(openTarget(flags))
    expect(message).toContain(expected)
    expect(message).not.toContain('hush')
  })
})
