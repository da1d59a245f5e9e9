import { tmpdir } from 'node:os'
import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { newItems, noon } from '../../../../test/make.ts'
import { run, testDatabase } from '../../../../test/postgres.ts'
import type { CredentialSource, Credentials } from '../../contract/credentials.ts'
import { openPostgres } from '../postgres-storage.ts'

const postgres = await requireService('postgres')
const ownPostgres = await requireService('privatePostgres', {
  settings: { unix_socket_directories: tmpdir() },
})

class Source implements CredentialSource {
  now: Credentials
  readonly refusedUsers: string[] = []
  #listener: ((credentials: Credentials) => void) | undefined

  constructor(now: Credentials) {
    this.now = now
  }

  async getCurrent(): Promise<Credentials> {
    return this.now
  }

  onReplaced(listener: (credentials: Credentials) => void): () => void {
    this.#listener = listener
    return () => {}
  }

  replace(credentials: Credentials): void {
    this.now = credentials
    this.#listener?.(credentials)
  }

  onRejected(credentials: Credentials): void {
    this.refusedUsers.push(credentials.user)
  }

  async close(): Promise<void> {}
}

describe('credentials of the store', needs(postgres), () => {
  it('replacing credentials under load fails no request, and the old credentials are no longer used', async () => {
    await using database = await testDatabase()
    const [before, after] = ['a', 'b'].map((name) => ({
      user: `redrive_${name}_${Math.random().toString(36).slice(2)}`,
      password: `p@ss:/${name}`,
    })) as [Credentials, Credentials]
    for (const { user, password } of [before, after]) {
      await database.rows(`create role ${user} login superuser password '${password}'`)
    }
    const source = new Source(before)
    const storage = await openPostgres({ kind: 'postgres', url: database.url, credentials: source })
    try {
      await run(storage, { op: 'create-queue', queue: { name: 'orders' }, now: noon })
      let isOver = false
      let produced = 0
      const load = Promise.all(
        Array.from({ length: 20 }, async () => {
          while (!isOver) {
            await run(storage, {
              op: 'produce',
              queue: 'orders',
              partition: 0,
              items: newItems(1),
              now: noon,
            })
            produced++
          }
        }),
      )
      const users = async () => {
        const rows = await database.rows<{ usename: string }>(
          `select distinct usename from pg_stat_activity where application_name = 'redrive' and datname = current_database()`,
        )
        return rows.map(({ usename }) => usename)
      }
      await expect.poll(() => produced).toBeGreaterThan(50)
      expect(await users()).toEqual([before.user])
      source.replace(after)
      const atReplaced = produced
      await expect.poll(() => produced).toBeGreaterThan(atReplaced + 50)
      await expect.poll(users).toEqual([after.user])
      isOver = true
      await load
      expect(await storage.readCounts({ queue: 'orders' })).toMatchObject([{ waiting: produced }])
    } finally {
      await storage.close()
      await database.rows(`drop owned by ${before.user}, ${after.user} cascade`)
      await database.rows(`drop role ${before.user}, ${after.user}`)
    }
  })

  it('refused credentials are reported to their source, and the next ones are used', async () => {
    await using database = await testDatabase()
    const url = new URL(database.url)
    const good = { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
    const source = new Source({ user: 'nobody_here', password: 'secret' })
    const open = () => openPostgres({ kind: 'postgres', url: database.url, credentials: source })
    await expect(open()).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.not.stringContaining('secret'),
    })
    expect(source.refusedUsers).toEqual(['nobody_here'])
    source.now = good
    await (await open()).close()
  })
})

describe('a database behind a Unix socket', needs(ownPostgres), () => {
  it('credentials are used, although a URL without a host cannot contain a user', async () => {
    const { port, username, password } = new URL(ownPostgres.url)
    const url = `postgres:///postgres?host=${encodeURIComponent(tmpdir())}&port=${port}`
    const credentials = new Source({ user: username, password })
    const storage = await openPostgres({ kind: 'postgres', url, credentials })
    expect(await storage.getQueue('missing')).toBeNull()
    await storage.close()
  })
})

describe('a database that stops', needs(ownPostgres), () => {
  it('a stopped database fails writes in progress as STORE_UNAVAILABLE, and works again after its start', async () => {
    const storage = await openPostgres(
      { kind: 'postgres', url: ownPostgres.url },
      { postgresConnectTimeoutMs: 2_000 },
    )
    try {
      await run(storage, { op: 'create-queue', queue: { name: 'orders' }, now: noon })
      const produce = () =>
        run(storage, { op: 'produce', queue: 'orders', partition: 0, items: newItems(1), now: noon })
      const outcomes: ('kept' | 'unknown' | 'refused')[] = []
      let isOver = false
      const load = Promise.all(
        Array.from({ length: 8 }, async () => {
          while (!isOver) {
            try {
              await produce()
              outcomes.push('kept')
            } catch (error) {
              expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
              outcomes.push((error as Error).message.includes('unknown') ? 'unknown' : 'refused')
              await new Promise((resolve) => setTimeout(resolve, 20))
            }
          }
        }),
      )
      await expect.poll(() => outcomes.length).toBeGreaterThan(20)
      await ownPostgres.stop('immediate')
      await expect.poll(() => outcomes.includes('refused')).toBe(true)
      await expect(storage.ping()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      await ownPostgres.start()
      isOver = true
      await load
      await storage.ping()
      await produce()
      const [counts] = await storage.readCounts({ queue: 'orders' })
      const kept = outcomes.filter((outcome) => outcome === 'kept').length + 1
      const unknown = outcomes.filter((outcome) => outcome === 'unknown').length
      expect(counts?.waiting).toBeGreaterThanOrEqual(kept)
      expect(counts?.waiting).toBeLessThanOrEqual(kept + unknown)
      expect(await storage.verify()).toEqual([])
    } finally {
      await storage.close()
      await ownPostgres.end()
    }
  })
})
