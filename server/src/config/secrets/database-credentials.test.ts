import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../../../tools/services/index.ts'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import { type FakeVault, startFakeVault } from '../../../test/vault/fake-vault.ts'
import { createManualTimers, type ManualTimers } from '../../../test/vault/manual-timers.ts'
import type { Credentials } from '../../storage/contract/credentials.ts'
import { createVault, type Vault, type VaultLogin } from '../vault/vault.ts'
import { createDatabaseCredentials, type DatabaseCredentials } from './database-credentials.ts'
import { Secret } from './secret.ts'

const minute = 60_000
const postgres = await requireService('postgres')

describe('leased database credentials', needs(postgres), () => {
  let timers: ManualTimers
  let database: Database
  let server: FakeVault
  let vault: Vault
  let credentials: DatabaseCredentials
  let notices: string[]

  beforeEach(async () => {
    timers = createManualTimers()
    notices = []
    database = await createDatabase()
    server = await startFakeVault(timers, database.url)
    await server.createDatabaseRole('rw', 3_600, 6_000)
    open(withToken(server.rootToken))
  })
  afterEach(async () => {
    server.answerAll()
    await credentials.close()
    await vault.close()
    await server.stop()
    await database.drop()
  })

  function open(login: VaultLogin): void {
    const notify = (_: string, sentence: string) => notices.push(sentence)
    vault = createVault({
      address: server.address,
      namespace: undefined,
      requestTimeoutMs: 5_000,
      kvMount: 'secret',
      login,
      timers,
      notify,
    })
    credentials = createDatabaseCredentials({ vault, path: 'database/creds/rw', timers, notify })
  }

  /** Advances time for Redrive and for Vault, which drops the users whose lease has ended. */
  async function pass(ms: number): Promise<void> {
    await timers.advance(ms)
    await server.endLeases()
  }

  async function readCurrentUser({ user, password }: Credentials): Promise<string> {
    const url = new URL(database.url)
    url.username = encodeURIComponent(user)
    url.password = password
    const client = new Client({ connectionString: url.href })
    await client.connect()
    try {
      const { rows } = await client.query<{ user: string }>('select current_user as user')
      return rows[0]?.user ?? ''
    } finally {
      await client.end()
    }
  }

  it('leased credentials open the database', async () => {
    const current = await credentials.getCurrent()
    expect(await readCurrentUser(current)).toBe(current.user)
  })

  it('credentials stay the same while their lease is renewed', async () => {
    const first = await credentials.getCurrent()
    await pass(50 * minute)
    expect(server.requests.filter((line) => line.includes('leases/renew'))).toHaveLength(1)
    await pass(20 * minute)
    expect(await credentials.getCurrent()).toEqual(first)
    expect(await readCurrentUser(first)).toBe(first.user)
  })

  it('credentials are replaced before the maximum of their lease, while the old ones still work', async () => {
    const first = await credentials.getCurrent()
    let atReplacement: Promise<string[]> | undefined
    credentials.onReplaced((second) => {
      atReplacement = Promise.all([readCurrentUser(first), readCurrentUser(second)])
    })
    await timers.advance(100 * minute)
    const second = await credentials.getCurrent()
    expect(second.user).not.toBe(first.user)
    expect(await atReplacement).toEqual([first.user, second.user])

    await server.endLeases()
    await expect(readCurrentUser(first)).rejects.toThrow()
    expect(await readCurrentUser(second)).toBe(second.user)
  })

  it('credentials are replaced when the token that leased them is replaced', async () => {
    await credentials.close()
    const { roleId, secretId } = await server.createAppRole(600, 900)
    open({ kind: 'approle', mount: 'approle', roleId, readSecretId: async () => new Secret(secretId) })
    const first = await credentials.getCurrent()
    // The maximum of the token, long before the lease of the credentials ends.
    await pass(15 * minute)
    const second = await credentials.getCurrent()
    expect(second.user).not.toBe(first.user)
    await expect(readCurrentUser(first)).rejects.toThrow()
    expect(await readCurrentUser(second)).toBe(second.user)
  })

  it('credentials stay in use while Vault is unavailable, and are renewed when it is back', async () => {
    const first = await credentials.getCurrent()
    server.answerAll({ status: 503, body: { errors: ['Vault is sealed'] } })
    await pass(45 * minute)
    expect(await credentials.getCurrent()).toEqual(first)
    expect(notices.at(-1)).toMatch(
      /^Vault issued no new database credentials: .* sys\/leases\/renew: Vault is sealed .* stay in use$/,
    )
    server.answerAll()
    await pass(20 * minute)
    expect(await readCurrentUser(await credentials.getCurrent())).toBe(first.user)
  })

  it('credentials are replaced after the database rejected them', async () => {
    const first = await credentials.getCurrent()
    await pass(minute)
    credentials.onRejected(first)
    expect((await credentials.getCurrent()).user).not.toBe(first.user)
  })

  it('closing the credentials revokes their lease', async () => {
    const first = await credentials.getCurrent()
    await credentials.close()
    await expect(readCurrentUser(first)).rejects.toThrow()
    expect(server.liveUsers()).toEqual([])
  })

  it('log messages contain neither passwords nor the token', async () => {
    const passwords = [(await credentials.getCurrent()).password]
    await timers.advance(100 * minute)
    passwords.push((await credentials.getCurrent()).password)
    server.answerAll({ status: 403, body: { errors: ['permission denied'] } })
    await timers.advance(100 * minute)
    expect(notices.length).toBeGreaterThan(1)
    for (const secret of [...passwords, server.rootToken]) expect(notices.join('\n')).not.toContain(secret)
  })

  function withToken(token: string): VaultLogin {
    return { kind: 'token', readToken: async () => new Secret(token) }
  }
})
