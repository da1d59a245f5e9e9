import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { manualTimers } from '../../test/vault/manual-timers.ts'
import { type StandInVault, startStandInVault } from '../../test/vault/stand-in-vault.ts'
import { KnownError } from '../errors.ts'
import type { StoreTarget } from '../storage/open-storage.ts'
import { loadSettings } from './load-settings.ts'
import { openStoreTarget } from './open-store-target.ts'
import { Secret } from './secret.ts'
import { createSecrets, type Secrets } from './secrets.ts'
import type { SettingName, Settings } from './settings.ts'

type Flags = Partial<Record<SettingName, string>>

const timers = manualTimers()
let folder: string
let vault: StandInVault

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-secrets-'))
  writeFileSync(join(folder, 'token'), 'from-file\n')
  writeFileSync(join(folder, 'windows'), 'from-windows\r\n')
  writeFileSync(join(folder, 'spaces'), ' kept \n\n')
  writeFileSync(join(folder, 'empty'), '\n')
  vault = await startStandInVault(timers)
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

async function target(flags: Flags): Promise<StoreTarget> {
  const { settings, secrets } = open(flags)
  return openStoreTarget(settings, secrets, () => {})
}

async function complaint(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason) => reason,
  )
  if (error instanceof KnownError) return `${error.code}: ${error.message}`
  throw new Error(`not foreseen: ${error}`)
}

describe('a secret', () => {
  it('is itself, or read from a file, a variable or Vault', async () => {
    expect(await read('plain')).toBe('plain')
    expect(await read('env:DB_PASSWORD')).toBe('from-environment')
    expect(await read(`file:${join(folder, 'token')}`)).toBe('from-file')
    expect(await read('file:token')).toBe('from-file')
    expect(await read('vault:secret/team/db#password', withVault())).toBe('from-vault')
    expect(await read('vault:secret/data/team/db#password', withVault())).toBe('from-vault')
  })

  it('from a file loses one newline at its end and nothing else', async () => {
    expect(await read('file:windows')).toBe('from-windows')
    expect(await read('file:spaces')).toBe(' kept \n')
  })

  it('that is not there is named by its place', async () => {
    expect(await complaint(read('file:gone'))).toBe(
      'SECRET_UNAVAILABLE: the secret file gone cannot be read: ENOENT',
    )
    expect(await complaint(read('file:empty'))).toContain('the secret file empty is empty')
    expect(await complaint(read('env:EMPTY'))).toContain('the environment variable EMPTY holds no secret')
    expect(await complaint(read('env:GONE'))).toContain('the environment variable GONE holds no secret')
  })

  it('may give the token for Vault, except from Vault', async () => {
    writeFileSync(join(folder, 'vault-token'), `${vault.rootToken}\n`)
    const fromFile = withVault({ 'vault.token': 'file:vault-token' })
    expect(await read('vault:secret/team/db#password', fromFile)).toBe('from-vault')
    const circular = withVault({ 'vault.token': 'vault:secret/team/db#token' })
    expect(await complaint(read('vault:secret/team/db#password', circular))).toContain(
      'SETTING_INVALID: vault.token and vault.secret_id cannot be vault: references',
    )
  })

  it('from Vault with AppRole needs no token', async () => {
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
  ])('from Vault, with %j, says what is missing', async (flags, message) => {
    const said = await complaint(
      (async () => open(flags).secrets.read(new Secret('vault:secret/team/db#password')))(),
    )
    expect(said).toContain('SETTING_INVALID')
    expect(said).toContain(message)
  })
})

describe('the store that the settings name', () => {
  it('is a file or memory as it is', async () => {
    expect(await target({ store: 'a.db' })).toEqual({ kind: 'sqlite', path: 'a.db' })
    expect(await target({ store: ':memory:' })).toEqual({ kind: 'memory' })
  })

  it('is a URL alone when the database needs no password', async () => {
    expect(await target({ store: 'postgres://app@db/queues' })).toEqual({
      kind: 'postgres',
      url: 'postgres://app@db/queues',
    })
  })

  it.each<[string, Flags, string]>([
    ['in the URL', { store: 'postgres://app:hush@db/queues' }, 'hush'],
    ['as a reference in the URL', { store: 'postgres://app:env:DB_PASSWORD@db/queues' }, 'from-environment'],
    ['as a setting', { store: 'postgres://app@db/queues', 'store.password': 'file:token' }, 'from-file'],
  ])('has its password %s', async (_, flags, password) => {
    const store = await target(flags)
    if (store.kind !== 'postgres') throw new Error(store.kind)
    expect(store.url).toBe('postgres://db/queues')
    expect(await store.credentials?.current()).toEqual({ user: 'app', password })
  })

  it('may be a reference as a whole', async () => {
    const store = await target(withVault({ store: 'vault:secret/team/db#url' }))
    if (store.kind !== 'postgres') throw new Error(store.kind)
    expect(store.url).toBe('postgres://db/queues')
    expect(await store.credentials?.current()).toEqual({ user: 'app', password: 'hush' })
  })

  it('is not shown when it came out of a reference and is wrong', async () => {
    writeFileSync(join(folder, 'store-url'), 'mysql://app:hush@hidden/queues')
    const said = await complaint(target({ store: 'file:store-url' }))
    expect(said).toContain('STORE_URL_INVALID: the store "file:store-url" cannot be used')
    expect(said).not.toMatch(/hush|hidden/)
  })

  it('has credentials leased from Vault', async () => {
    const flags = withVault({ store: 'postgres://db/queues', 'store.credentials': 'vault:database/creds/rw' })
    const store = await target(flags)
    if (store.kind !== 'postgres') throw new Error(store.kind)
    const { user } = (await store.credentials?.current()) ?? {}
    expect(user).toMatch(/^v-token-rw-/)
    await store.credentials?.close()
    expect(vault.liveUsers()).toEqual([])
  })

  it.each<[Flags, string]>([
    [
      { store: 'postgres://app:hush@db/queues', 'store.password': 'hush' },
      "SETTING_INVALID: the store's password is given in several places",
    ],
    [{ store: 'postgres://db/queues', 'store.password': 'hush' }, 'has a password but names no user'],
    [
      { store: 'a.db', 'store.password': 'hush' },
      'store.password is set, but the store is not a PostgreSQL one',
    ],
    [{ store: 'a.db', 'store.credentials': 'vault:database/creds/rw' }, 'store.credentials is set, but'],
  ])('with %j is refused', async (flags, message) => {
    const said = await complaint(target(flags))
    expect(said).toContain(message)
    expect(said).not.toContain('hush')
  })
})
