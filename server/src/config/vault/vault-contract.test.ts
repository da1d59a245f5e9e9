/**
 * Runs the same tests against the fake Vault and, if `REDRIVE_TEST_VAULT` names the program of HashiCorp
 * Vault or OpenBao, against a real one. This proves that the fake behaves like the real Vault.
 */
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../../../tools/services/index.ts'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import { startFakeVault } from '../../../test/vault/fake-vault.ts'
import { startRealVault } from '../../../test/vault/real-vault.ts'
import type { VaultUnderTest } from '../../../test/vault/vault-under-test.ts'
import type { Credentials } from '../../storage/contract/credentials.ts'
import { createDatabaseCredentials } from '../secrets/database-credentials.ts'
import { Secret } from '../secrets/secret.ts'
import { systemTimers } from '../secrets/timers.ts'
import { createVault, type Vault, type VaultLogin } from './vault.ts'

const postgres = await requireService('postgres')
const program = process.env.REDRIVE_TEST_VAULT

describe('the fake Vault', needs(postgres), () => {
  testVault((databaseUrl) => startFakeVault(systemTimers, databaseUrl))
})

if (program === undefined) {
  it.skip('a real Vault behaves like the fake (REDRIVE_TEST_VAULT is not set)', () => {})
} else {
  describe('a real Vault', needs(postgres), () => {
    testVault((databaseUrl) => startRealVault(program, databaseUrl), { isReal: true })
  })
}

function testVault(
  start: (databaseUrl: string) => Promise<VaultUnderTest>,
  { isReal = false }: Readonly<{ isReal?: boolean }> = {},
): void {
  let database: Database
  let server: VaultUnderTest
  const opened: Vault[] = []

  beforeAll(async () => {
    database = await createDatabase()
    server = await start(database.url)
    await server.putKv('app/db', { password: 'hush' })
    await server.createDatabaseRole('long', 3_600, 7_200)
    await server.createDatabaseRole('short', 20, 30)
    await server.createDatabaseRole('replaced', 10, 15)
  })
  afterAll(async () => {
    await Promise.all(opened.map((vault) => vault.close()))
    await server?.stop()
    await database?.drop()
  })

  function open(login: VaultLogin): Vault {
    const vault = createVault({
      address: server.address,
      namespace: undefined,
      requestTimeoutMs: 5_000,
      kvMount: 'secret',
      login,
      timers: systemTimers,
      notify: () => {},
    })
    opened.push(vault)
    return vault
  }

  async function createAppRoleLogin(ttl = 3_600, maxTtl = 7_200): Promise<VaultLogin> {
    const { roleId, secretId } = await server.createAppRole(ttl, maxTtl)
    return { kind: 'approle', mount: 'approle', roleId, readSecretId: async () => new Secret(secretId) }
  }

  function withToken(token: string): VaultLogin {
    return { kind: 'token', readToken: async () => new Secret(token) }
  }

  async function readCurrentUser({ user, password }: Credentials): Promise<string> {
    const url = new URL(database.url)
    url.username = encodeURIComponent(user)
    url.password = encodeURIComponent(password)
    const client = new Client({ connectionString: url.href })
    await client.connect()
    const { rows } = await client.query<{ user: string }>('select current_user as user')
    await client.end()
    return rows[0]?.user ?? ''
  }

  it('a KV secret is read with a token, with and without data/ in its path', async () => {
    const vault = open(withToken(await server.createToken(3_600)))
    expect((await vault.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
    expect((await vault.readKv('secret/data/app/db', 'password')).reveal()).toBe('hush')
  })

  it('a KV secret is read with AppRole', async () => {
    const vault = open(await createAppRoleLogin())
    expect((await vault.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('a token that never ends is accepted', async () => {
    const vault = open(withToken(server.rootToken))
    expect((await vault.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('Vault answers 404 for a missing path, and 403 for an unknown token', async () => {
    const vault = open(await createAppRoleLogin())
    await expect(vault.readKv('secret/nothing', 'x')).rejects.toThrow(/the path does not exist \(HTTP 404\)$/)
    const unknown = open(withToken('hvs.unknown'))
    await expect(unknown.readKv('secret/app/db', 'x')).rejects.toThrow(/permission denied.*\(HTTP 403\)$/)
  })

  it('Vault rejects a wrong secret id', async () => {
    const login = await createAppRoleLogin()
    if (login.kind !== 'approle') throw new Error('not AppRole')
    const vault = open({ ...login, readSecretId: async () => new Secret('wrong') })
    await expect(vault.readKv('secret/app/db', 'x')).rejects.toThrow(
      /invalid role or secret ID.*\(HTTP 400\)$/,
    )
  })

  it('leased database credentials work, and are renewed for the requested time', async () => {
    const vault = open(await createAppRoleLogin())
    const grant = await vault.leaseCredentials('database/creds/long')
    expect([grant.leaseMs, grant.isRenewable]).toEqual([3_600_000, true])
    const { user, password } = grant.value
    expect(await readCurrentUser({ user, password: password.reveal() })).toBe(user)
    const renewed = await vault.renewCredentials(grant)
    expect(renewed.leaseMs).toBeGreaterThan(3_590_000)
  })

  it('a renewal near the maximum grants less than the requested time', async () => {
    const vault = open(await createAppRoleLogin())
    const grant = await vault.leaseCredentials('database/creds/short')
    const renewed = await vault.renewCredentials({ ...grant, leaseMs: 3_600_000 })
    expect(renewed.leaseMs).toBeLessThanOrEqual(30_000)
  })

  it('Vault refuses to renew an unknown lease', async () => {
    const vault = open(await createAppRoleLogin())
    const grant = await vault.leaseCredentials('database/creds/long')
    const unknown = { ...grant.value, leaseId: `${grant.value.leaseId}x` }
    await expect(vault.renewCredentials({ ...grant, value: unknown })).rejects.toThrow(/\(HTTP 400\)$/)
  })

  it('the client logs in again after its token was revoked', async () => {
    const token = await server.createToken(3_600)
    const next = await server.createToken(3_600)
    let isRevoked = false
    // Advance ten seconds before the second read: a token acquired just now is not replaced.
    let nowMs = 0
    const vault = createVault({
      address: server.address,
      namespace: undefined,
      requestTimeoutMs: 5_000,
      kvMount: 'secret',
      login: { kind: 'token', readToken: async () => new Secret(isRevoked ? next : token) },
      timers: { nowMs: () => nowMs, schedule: () => () => {} },
      notify: () => {},
    })
    await vault.readKv('secret/app/db', 'password')
    await server.revokeToken(token)
    isRevoked = true
    nowMs = 10_000
    expect((await vault.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('revoking the token ends the credentials that were leased with it', async () => {
    const vault = open(await createAppRoleLogin())
    const { user, password } = (await vault.leaseCredentials('database/creds/long')).value
    await vault.close()
    await expect
      .poll(() => readCurrentUser({ user, password: password.reveal() }).catch(() => 'refused'))
      .toBe('refused')
  })

  // The time of a real Vault cannot be advanced. database-credentials.test.ts has this promise for the fake.
  if (!isReal) return
  it('credentials are replaced while the old ones still work', { timeout: 30_000 }, async () => {
    const vault = open(await createAppRoleLogin())
    const credentials = createDatabaseCredentials({
      vault,
      path: 'database/creds/replaced',
      timers: systemTimers,
      notify: () => {},
    })
    const first = await credentials.getCurrent()
    const second = await new Promise<Credentials>((resolve) => credentials.onReplaced(resolve))
    expect(await readCurrentUser(first)).toBe(first.user)
    expect(await readCurrentUser(second)).toBe(second.user)
    await credentials.close()
  })
}
