import { describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../../tools/services/require-service.ts'
import { noon } from '../../../../test/make.ts'
import { testDatabase } from '../../../../test/postgres.ts'

const postgres = await requireService('postgres')

describe('migrating', needs(postgres), () => {
  it('works when twenty servers start at once: each migration is applied once', async () => {
    await using database = await testDatabase()
    const options = { postgresPoolMax: 1 }
    const storages = await Promise.all(Array.from({ length: 20 }, () => database.open(options)))
    await Promise.all(storages.map((storage) => storage.ping()))
    const applied = await database.rows('select number, name, length(checksum) as n from redrive.migrations')
    expect(applied).toEqual([{ number: 1, name: '0001_foundation', n: 64 }])
  })

  it('finds its own schema again and leaves what is in it', async () => {
    await using database = await testDatabase()
    const first = await database.open()
    await first.write([{ op: 'create-queue', queue: { name: 'kept' }, now: noon }])
    await first.close()
    const again = await database.open()
    expect(await again.getQueue('kept')).not.toBeNull()
  })

  it('refuses a schema that is newer, and names both versions', async () => {
    await using database = await testDatabase()
    await (await database.open()).close()
    await database.rows(`insert into redrive.migrations values (2, '0002_later', 'x', now())`)
    await expect(database.open()).rejects.toMatchObject({
      code: 'SCHEMA_NEWER',
      message: expect.stringMatching(/version 2\b.*up to 1\b/),
    })
  })

  it('refuses a schema of that name that is not ours, and touches nothing in it', async () => {
    await using database = await testDatabase()
    await database.rows('create schema redrive create table things (id int)')
    await expect(database.open()).rejects.toMatchObject({ code: 'STORE_NOT_OURS' })
    expect(
      await database.rows(`select relname from pg_class where relnamespace = 'redrive'::regnamespace`),
    ).toEqual([{ relname: 'things' }])
  })

  it('takes an empty schema that was made for it', async () => {
    await using database = await testDatabase()
    await database.rows('create schema redrive')
    await (await database.open()).ping()
  })

  it('leaves alone what somebody else has in a schema named dlq', async () => {
    await using database = await testDatabase()
    await database.rows(`create schema dlq create table dlq_messages (mine text)`)
    await database.rows(`insert into dlq.dlq_messages values ('precious')`)
    await database.open()
    expect(await database.rows('select * from dlq.dlq_messages')).toEqual([{ mine: 'precious' }])
    expect(await database.rows('select * from dlq.dlq_summary')).toEqual([])
    expect(await database.rows('select * from redrive.dlq_messages')).toEqual([])
  })

  it('says what is wrong with the server or the login, and never the password', async () => {
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
