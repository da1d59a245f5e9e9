/**
 * The same promises against the stand-in and, where `REDRIVE_TEST_VAULT` names the program of HashiCorp Vault
 * or OpenBao, against a real one: what holds the stand-in to Vault's real behaviour.
 */
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { startRealVault } from '../../test/vault/real-vault.ts'
import { startStandInVault } from '../../test/vault/stand-in-vault.ts'
import type { VaultUnderTest } from '../../test/vault/vault-under-test.ts'
import type { Credentials } from '../storage/contract/credentials.ts'
import { createDatabaseCredentials } from './database-credentials.ts'
import { Secret } from './secret.ts'
import { systemTimers } from './timers.ts'
import { createVault, type Vault, type VaultLogin } from './vault.ts'

const postgres = await requireService('postgres')
const program = process.env.REDRIVE_TEST_VAULT

describe('the stand-in for Vault', needs(postgres), () => {
  keepsThePromises((databaseUrl) => startStandInVault(systemTimers, databaseUrl))
})

if (program === undefined) {
  it.skip('a real Vault: REDRIVE_TEST_VAULT does not name its program', () => {})
} else {
  describe('a real Vault', needs(postgres), () => {
    keepsThePromises((databaseUrl) => startRealVault(program, databaseUrl))
  })
}

function keepsThePromises(start: (databaseUrl: string) => Promise<VaultUnderTest>): void {
  let database: Database
  let server: VaultUnderTest
  const opened: Vault[] = []

  beforeAll(async () => {
    database = await createDatabase()
    server = await start(database.url)
    await server.putKv('app/db', { password: 'hush' })
    await server.createDatabaseRole('long', 3_600, 7_200)
    await server.createDatabaseRole('short', 2, 3)
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

  async function appRole(ttl = 3_600, maxTtl = 7_200): Promise<VaultLogin> {
    const { roleId, secretId } = await server.createAppRole(ttl, maxTtl)
    return { kind: 'approle', mount: 'approle', roleId, readSecretId: async () => new Secret(secretId) }
  }

  function withToken(token: string): VaultLogin {
    return { kind: 'token', readToken: async () => new Secret(token) }
  }

  async function whoAmI({ user, password }: Credentials): Promise<string> {
    const url = new URL(database.url)
    url.username = encodeURIComponent(user)
    url.password = encodeURIComponent(password)
    const client = new Client({ connectionString: url.href })
    await client.connect()
    const { rows } = await client.query<{ user: string }>('select current_user as user')
    await client.end()
    return rows[0]?.user ?? ''
  }

  it('reads a KV secret with a token, with and without data/ in its path', async () => {
    const vault = open(withToken(await server.createToken(3_600)))
    expect((await vault.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
    expect((await vault.readKv('secret/data/app/db', 'password')).reveal()).toBe('hush')
  })

  it('reads a KV secret with AppRole', async () => {
    const vault = open(await appRole())
    expect((await vault.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('takes a token without an end', async () => {
    const vault = open(withToken(server.rootToken))
    expect((await vault.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('says 404 for what is not there, and 403 for a token it does not know', async () => {
    const vault = open(await appRole())
    await expect(vault.readKv('secret/nothing', 'x')).rejects.toThrow(/nothing is there \(HTTP 404\)$/)
    const stranger = open(withToken('hvs.stranger'))
    await expect(stranger.readKv('secret/app/db', 'x')).rejects.toThrow(/permission denied.*\(HTTP 403\)$/)
  })

  it('refuses a wrong secret id', async () => {
    const login = await appRole()
    if (login.kind !== 'approle') throw new Error('not AppRole')
    const vault = open({ ...login, readSecretId: async () => new Secret('wrong') })
    await expect(vault.readKv('secret/app/db', 'x')).rejects.toThrow(
      /invalid role or secret ID.*\(HTTP 400\)$/,
    )
  })

  it('leases database credentials that work, and renews them to the length asked for', async () => {
    const vault = open(await appRole())
    const grant = await vault.leaseCredentials('database/creds/long')
    expect([grant.leaseMs, grant.isRenewable]).toEqual([3_600_000, true])
    const { user, password } = grant.value
    expect(await whoAmI({ user, password: password.reveal() })).toBe(user)
    const renewed = await vault.renewCredentials(grant)
    expect(renewed.leaseMs).toBeGreaterThan(3_590_000)
  })

  it('grants less than asked for when the maximum is near', async () => {
    const vault = open(await appRole())
    const grant = await vault.leaseCredentials('database/creds/short')
    const renewed = await vault.renewCredentials({ ...grant, leaseMs: 3_600_000 })
    expect(renewed.leaseMs).toBeLessThanOrEqual(3_000)
  })

  it('refuses to renew a lease it does not know', async () => {
    const vault = open(await appRole())
    const grant = await vault.leaseCredentials('database/creds/long')
    const unknown = { ...grant.value, leaseId: `${grant.value.leaseId}x` }
    await expect(vault.renewCredentials({ ...grant, value: unknown })).rejects.toThrow(/\(HTTP 400\)$/)
  })

  it('logs in again after the token was revoked', async () => {
    const token = await server.createToken(3_600)
    const next = await server.createToken(3_600)
    let isRevoked = false
    // The clock is ten seconds on at the second look: a token just taken is not replaced.
    let nowMs = 0
    const vault = createVault({
      address: server.address,
      namespace: undefined,
      requestTimeoutMs: 5_000,
      kvMount: 'secret',
      login: { kind: 'token', readToken: async () => new Secret(isRevoked ? next : token) },
      timers: { nowMs: () => nowMs, after: () => () => {} },
      notify: () => {},
    })
    await vault.readKv('secret/app/db', 'password')
    await server.revokeToken(token)
    isRevoked = true
    nowMs = 10_000
    expect((await vault.readKv('secret/app/db', 'password')).reveal()).toBe('hush')
  })

  it('ends leased credentials when the token is given back', async () => {
    const vault = open(await appRole())
    const { user, password } = (await vault.leaseCredentials('database/creds/long')).value
    await vault.close()
    await expect
      .poll(() => whoAmI({ user, password: password.reveal() }).catch(() => 'refused'))
      .toBe('refused')
  })

  it('has credentials replaced while the old ones still work', { timeout: 20_000 }, async () => {
    const vault = open(await appRole())
    const credentials = createDatabaseCredentials({
      vault,
      path: 'database/creds/short',
      timers: systemTimers,
      notify: () => {},
    })
    const first = await credentials.current()
    const second = await new Promise<Credentials>((resolve) => credentials.onReplaced(resolve))
    expect(await whoAmI(first)).toBe(first.user)
    expect(await whoAmI(second)).toBe(second.user)
    await credentials.close()
  })
}
