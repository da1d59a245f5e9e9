import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { noon } from '../../../../test/make.ts'
import { testDatabase } from '../../../../test/postgres.ts'
import type { Migration } from '../../shared/migrations.ts'
import { Connections } from '../connection/connections.ts'
import { migrate, migrations } from './migrate.ts'

const postgres = await requireService('postgres')

describe('migrating a PostgreSQL database', needs(postgres), () => {
  it('each migration is applied once when twenty servers start at once', async () => {
    await using database = await testDatabase()
    const options = { postgresPoolMax: 1 }
    const storages = await Promise.all(Array.from({ length: 20 }, () => database.open(options)))
    await Promise.all(storages.map((storage) => storage.ping()))
    const applied = await database.rows('select number, name, length(checksum) as n from redrive.migrations')
    expect(applied).toEqual(migrations.map(({ name }, index) => ({ number: index + 1, name, n: 64 })))
  })

  it('a schema of Redrive is found again with its rows', async () => {
    await using database = await testDatabase()
    const first = await database.open()
    await first.write([{ op: 'create-queue', queue: { name: 'kept' }, now: noon }])
    await first.close()
    const again = await database.open()
    expect(await again.getQueue('kept')).not.toBeNull()
  })

  it('a database of an earlier version gets the missing migrations and keeps its rows', async () => {
    await using database = await testDatabase()
    const first = await database.open()
    await first.write([{ op: 'create-queue', queue: { name: 'kept' }, now: noon }])
    await first.close()
    const connections = new Connections({
      url: database.url,
      credentials: undefined,
      poolMax: 1,
      connectTimeoutMs: 5_000,
    })
    const later: readonly Migration[] = [
      { name: '9998_other-store', noChange: 'only SQLite needs it' },
      { name: '9999_add-column', sql: 'alter table redrive.queues add column note text' },
    ]
    try {
      await migrate(connections, { wanted: [...migrations, ...later] })
      await migrate(connections, { wanted: [...migrations, ...later] })
    } finally {
      await connections.close()
    }
    expect(await database.rows('select name, note from redrive.queues')).toEqual([
      { name: 'kept', note: null },
    ])
    expect(await database.rows('select number, name from redrive.migrations order by number')).toEqual(
      [...migrations, ...later].map(({ name }, index) => ({ number: index + 1, name })),
    )
  })

  it('a schema whose migration differs from the one of this program is refused', async () => {
    await using database = await testDatabase()
    await (await database.open()).close()
    await database.rows(`update redrive.migrations set checksum = 'x'`)
    await expect(database.open()).rejects.toMatchObject({
      code: 'SCHEMA_DIFFERS',
      message: expect.stringMatching(
        /created by a different build of Redrive: .*0001_foundation, checksum x; .*checksum fee1b277a7af/,
      ),
    })
  })

  it('a newer schema is refused with both versions', async () => {
    await using database = await testDatabase()
    await (await database.open()).close()
    const known = migrations.length
    await database.rows(`insert into redrive.migrations values (${known + 1}, '9999_later', 'x', now())`)
    await expect(database.open()).rejects.toMatchObject({
      code: 'SCHEMA_NEWER',
      message: expect.stringMatching(new RegExp(`version ${known + 1}\\b.*up to ${known}\\b`)),
    })
  })

  it('a schema named redrive of another program is refused and not changed', async () => {
    await using database = await testDatabase()
    await database.rows('create schema redrive create table things (id int)')
    await expect(database.open()).rejects.toMatchObject({ code: 'STORE_NOT_OURS' })
    expect(
      await database.rows(`select relname from pg_class where relnamespace = 'redrive'::regnamespace`),
    ).toEqual([{ relname: 'things' }])
  })

  it('an empty schema named redrive is used', async () => {
    await using database = await testDatabase()
    await database.rows('create schema redrive')
    await (await database.open()).ping()
  })

  it('objects of another program in a schema named dlq stay as they are', async () => {
    await using database = await testDatabase()
    await database.rows(`create schema dlq create table dlq_messages (mine text)`)
    await database.rows(`insert into dlq.dlq_messages values ('precious')`)
    await database.open()
    expect(await database.rows('select * from dlq.dlq_messages')).toEqual([{ mine: 'precious' }])
    expect(await database.rows('select * from dlq.dlq_summary')).toEqual([])
    expect(await database.rows('select * from redrive.dlq_messages')).toEqual([])
  })

  it('an error names the problem with the server or the login, and never the password', async () => {
    await using database = await testDatabase()
    const { openPostgres } = await import('../postgres-storage.ts')
    const wrong = (change: (url: URL) => void) => {
      const url = new URL(database.url)
      change(url)
      return openPostgres({ kind: 'postgres', url: url.href }, { postgresConnectTimeoutMs: 2_000 })
    }
    await expect(wrong((url) => Object.assign(url, { pathname: '/nowhere' }))).rejects.toMatchObject({
      code: 'STORE_REFUSED',
    })
    const nobody = wrong((url) => Object.assign(url, { username: 'nobody-here', password: 'hunter2' }))
    await expect(nobody).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.not.stringContaining('hunter2'),
    })
    await expect(wrong((url) => Object.assign(url, { port: '1' }))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining(':1/'),
    })
  })
})
