/**
 * A PostgreSQL store whose user is leased from Vault for a few seconds. The store stays usable, and no call
 * fails, while the credentials are replaced and the old users are dropped.
 *
 * Runs against the fake Vault, and against a real Vault if `REDRIVE_TEST_VAULT` names its binary.
 */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { createSecrets, type Secrets } from '../../src/config/secrets/secrets.ts'
import { systemTimers } from '../../src/config/secrets/timers.ts'
import { loadSettings } from '../../src/config/settings/load-settings.ts'
import { openStoreTarget } from '../../src/config/store/open-store-target.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { aNewItem, noon } from '../make.ts'
import { startFakeVault } from '../vault/fake-vault.ts'
import { startRealVault } from '../vault/real-vault.ts'
import type { VaultUnderTest } from '../vault/vault-under-test.ts'

const postgres = await requireService('postgres')
const program = process.env.REDRIVE_TEST_VAULT

describe('with the fake Vault', needs(postgres), () => {
  describeReplacedCredentials((databaseUrl) => startFakeVault(systemTimers, databaseUrl))
})

if (program !== undefined) {
  describe('with a real Vault', needs(postgres), () => {
    describeReplacedCredentials((databaseUrl) => startRealVault(program, databaseUrl))
  })
}

function describeReplacedCredentials(start: (databaseUrl: string) => Promise<VaultUnderTest>): void {
  const owner = `redrive_owner_${randomBytes(4).toString('hex')}`
  let database: Database
  let vault: VaultUnderTest
  let secrets: Secrets | undefined

  beforeEach(async () => {
    database = await createDatabase()
    await runOnServer(`create role ${owner}`)
    await runOnServer(
      `grant create, connect on database ${new URL(database.url).pathname.slice(1)} to ${owner}`,
    )
    vault = await start(database.url)
    await vault.createDatabaseRole('rw', 3, 4, owner)
  })
  afterEach(async () => {
    await secrets?.close()
    await vault.stop()
    await runOnServer(`drop owned by ${owner}`)
    await runOnServer(`drop role ${owner}`)
    await database.drop()
  })

  async function runOnServer(statement: string): Promise<void> {
    const client = new Client({ connectionString: database.url })
    await client.connect()
    await client.query(statement).finally(() => client.end())
  }

  it('no read or write fails while leased database users are replaced', { timeout: 30_000 }, async () => {
    const { roleId, secretId } = await vault.createAppRole(3_600, 7_200)
    const { host, pathname } = new URL(database.url)
    const { settings } = loadSettings({
      folder: import.meta.dirname,
      environment: {},
      flags: {
        store: `postgres://${host}${pathname}`,
        'store.credentials': 'vault:database/creds/rw',
        'vault.address': vault.address,
        'vault.role_id': roleId,
        'vault.secret_id': secretId,
      },
    })
    const warnings: string[] = []
    const notify = (level: 'info' | 'warn', sentence: string) => {
      if (level === 'warn') warnings.push(sentence)
    }
    secrets = createSecrets({ settings, environment: {}, folder: import.meta.dirname, notify })
    const target = await openStoreTarget(settings, secrets, notify)
    if (target.kind !== 'postgres' || target.credentials === undefined)
      throw new Error('the store target has no credentials')
    const users = new Set<string>([(await target.credentials.getCurrent()).user])
    target.credentials.onReplaced(({ user }) => users.add(user))

    const storage = await openStorage(target)
    await storage.write([{ op: 'create-queue', queue: { name: 'orders' }, now: noon }])
    let accepted = 0
    const work = async (): Promise<void> => {
      while (users.size < 4) {
        const produce = {
          op: 'produce',
          queue: 'orders',
          partition: 0,
          items: [aNewItem()],
          now: noon,
        } as const
        await storage.write([produce])
        accepted++
        await storage.getQueue('orders')
      }
    }
    await Promise.all([work(), work(), work()])

    expect(users.size).toBeGreaterThanOrEqual(4)
    const [counts] = await storage.readCounts({})
    expect(counts?.waiting).toBe(accepted)
    expect(await storage.verify()).toEqual([])
    expect(warnings).toEqual([])
    await storage.close()
    await target.credentials.close()
  })
}
