import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeVault, startFakeVault } from '../../../test/vault/fake-vault.ts'
import { createManualTimers } from '../../../test/vault/manual-timers.ts'
import { KnownError } from '../../errors.ts'
import { readTlsParameters } from '../../storage/contract/tls.ts'
import type { StoreTarget } from '../../storage/open-storage.ts'
import { createSecrets } from '../secrets/secrets.ts'
import { loadSettings } from '../settings/load-settings.ts'
import { type SettingName, settingsTable } from '../settings/settings.ts'
import { openStoreTarget } from './open-store-target.ts'

type Flags = Partial<Record<SettingName, string>>
type PostgresTarget = Extract<StoreTarget, { kind: 'postgres' }>

const timers = createManualTimers()
const pemText = '-----BEGIN CERTIFICATE-----\nhush\n-----END CERTIFICATE-----'
let folder: string
let vault: FakeVault

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-store-tls-'))
  writeFileSync(join(folder, 'root.crt'), 'from a file\n')
  vault = await startFakeVault(timers)
  await vault.putKv('team/db', { ca: 'from Vault' })
})
afterAll(async () => {
  await vault.stop()
  rmSync(folder, { recursive: true })
})

async function open(flags: Flags): Promise<PostgresTarget> {
  const { settings } = loadSettings({
    flags: {
      'vault.address': vault.address,
      'vault.token': vault.rootToken,
      store: 'postgres://app@db/queues',
      ...flags,
    },
    environment: {},
    folder,
  })
  const environment = { ROOT_CERT: 'from a variable' }
  const secrets = createSecrets({ settings, environment, folder, notify: () => {}, timers })
  const target = await openStoreTarget(settings, secrets, () => {})
  if (target.kind !== 'postgres') throw new Error(target.kind)
  return target
}

async function readError(flags: Flags): Promise<string> {
  const error: unknown = await open(flags).catch((reason: unknown) => reason)
  if (error instanceof KnownError) return `${error.code}: ${error.message}`
  throw new Error(`not a KnownError: ${error}`)
}

describe('TLS parameters of the store', () => {
  it.each([
    ['a path', 'root.crt', 'from a file'],
    ['a file: reference', 'file:root.crt', 'from a file'],
    ['an env: reference', 'env:ROOT_CERT', 'from a variable'],
    ['a vault: reference', 'vault:secret/team/db#ca', 'from Vault'],
    ['PEM text', pemText, pemText],
  ])('sslrootcert can be %s, as a setting and in the URL', async (_kind, text, expected) => {
    const store = `postgres://app@db/queues?sslmode=verify-full&sslrootcert=${encodeURIComponent(text)}`
    for (const flags of [{ store }, { 'store.sslmode': 'verify-full', 'store.sslrootcert': text }]) {
      const { url, tls } = await open(flags)
      expect(url).toBe('postgres://app@db/queues')
      if (typeof tls?.rootCertificates !== 'object') throw new Error('there is no root certificate')
      expect(await tls.rootCertificates.read()).toBe(expected)
      expect(tls.rootCertificates.name).not.toContain('hush')
    }
  })

  it('sslrootcert=system means verify-full, as in libpq', async () => {
    expect((await open({ 'store.sslrootcert': 'system' })).tls).toMatchObject({
      mode: 'verify-full',
      rootCertificates: 'system',
    })
  })

  it('the environment variables of libpq apply where settings and URL set nothing', () => {
    const environment = { PGSSLMODE: 'verify-ca', PGSSLROOTCERT: '/root.crt' }
    expect(readTlsParameters(new URL('postgres://db/queues?sslmode=require'), environment)).toEqual({
      sslmode: { text: 'require', origin: 'sslmode in the store URL' },
      sslrootcert: { text: '/root.crt', origin: 'PGSSLROOTCERT' },
    })
  })

  it('PEM text in a setting is not shown, a reference is', () => {
    const show = (text: string) => {
      const { parse, format } = settingsTable['store.sslkey']
      return format(parse(text))
    }
    expect(show(pemText)).toBe('[secret]')
    expect(show('/run/key.pem')).toBe('/run/key.pem')
    expect(show('vault:secret/team/db#key')).toBe('vault:secret/team/db#key')
  })
})

describe('TLS parameters that do not fit together', () => {
  it.each<[Flags, string]>([
    [{ 'store.sslmode': 'verify-full' }, 'sslmode is verify-full, but sslrootcert is not set'],
    [{ 'store.sslmode': 'verify-ca' }, 'sslmode is verify-ca, but sslrootcert is not set'],
    [{ 'store.sslmode': 'require', 'store.sslrootcert': 'system' }, 'use sslmode verify-full'],
    [{ 'store.sslcert': 'client.crt' }, 'store.sslcert is set, but sslkey is not'],
    [{ 'store.sslkey': 'client.key' }, 'store.sslkey is set, but sslcert is not'],
    [
      { store: 'postgres://db/queues?sslmode=require', 'store.sslmode': 'require' },
      'sslmode is set more than once',
    ],
    [{ store: 'a.db', 'store.sslmode': 'require' }, 'store.sslmode is set, but the store is not PostgreSQL'],
    [
      { store: 'postgres://db/queues?sslmode=no-verify' },
      'sslmode in the store URL is "no-verify": it must be one of disable, allow, prefer',
    ],
  ])('%j is SETTING_INVALID: %s', async (flags, expected) => {
    const error = await readError(flags)
    expect(error).toContain('SETTING_INVALID')
    expect(error).toContain(expected)
  })

  it.each([
    ['postgres://db/queues?ssl=true', 'the parameter ssl, which Redrive does not support'],
    ['postgres://db/queues?sslcrl=/crl.pem', 'the parameter sslcrl, which Redrive does not support'],
    ['postgres://db/queues?sslnegotiation=direct', 'the parameter sslnegotiation'],
    ['postgres://db/queues?sslrootcert=vault:secret/team/db#ca', 'must be written as %23'],
  ])('the store %s is refused', async (store, expected) => {
    const error = await readError({ store })
    expect(error).toContain('STORE_URL_INVALID')
    expect(error).toContain(expected)
  })
})
