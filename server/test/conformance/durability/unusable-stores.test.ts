import { chmod, link, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findFreePort } from '../../../../tools/services/process/free-port.ts'
import { needs } from '../../../../tools/services/require-service.ts'
import { openStorage, openStorageToRead, type StoreTarget } from '../../../src/storage/open-storage.ts'
import { newItems, noon } from '../../make.ts'
import { startTestProcess } from '../processes/start-process.ts'
import { executeSql } from '../support/execute-sql.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { findObstacle, requirement } from '../support/machine-requirements.ts'
import { run } from '../support/store-reads.ts'
import { createTestStore, needsOf, postgres } from '../support/test-stores.ts'

type FileTarget = Exclude<StoreTarget, { kind: 'memory' }>

// Root may write everywhere, so the child process drops its privileges to get the refusal.
const giveUpRights = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
const isRoot = process.getuid?.() === 0
const [setpriv = '', ...setprivArgs] = giveUpRights
const noSetpriv = isRoot ? await findObstacle(setpriv, [...setprivArgs, 'true']) : undefined

describe('a SQLite store that cannot be opened', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'redrive-bad-stores-'))
  })
  afterAll(async () => rm(folder, { recursive: true, force: true }))
  const at = (path: string): StoreTarget => ({ kind: 'sqlite', path: join(folder, path) })

  it('opening a SQLite path that is a folder reports it', async () => {
    await mkdir(join(folder, 'a-folder'))
    const error = await expectRefusal(openStorage(at('a-folder')), 'STORE_UNWRITABLE')
    expect(error.message).toContain('a-folder')
  })

  it('opening a SQLite path below a file reports it', async () => {
    await writeFile(join(folder, 'a-file'), 'text')
    const error = await expectRefusal(openStorage(at('a-file/redrive.db')), 'STORE_UNWRITABLE')
    expect(error.message).toContain('a-file')
    expect(await readFile(join(folder, 'a-file'), 'utf8')).toBe('text')
  })

  it('a file that is not a database is reported and not changed', async () => {
    const text = 'Dear diary, '.repeat(1_000)
    await writeFile(join(folder, 'diary.txt'), text)
    const error = await expectRefusal(openStorage(at('diary.txt')), 'STORE_NOT_OURS')
    expect(error.message).toContain('diary.txt')
    expect(await readFile(join(folder, 'diary.txt'), 'utf8')).toBe(text)
  })

  it('a database of another program is reported and not changed', async () => {
    const path = join(folder, 'photos.db')
    const photos = new DatabaseSync(path)
    photos.exec('create table photos (id integer); insert into photos values (7)')
    photos.close()
    const before = await readFile(path)
    const error = await expectRefusal(openStorage(at('photos.db')), 'STORE_NOT_OURS')
    expect(error.message).toContain('photos.db')
    const again = new DatabaseSync(path)
    expect(again.prepare('select id from photos').all()).toEqual([{ id: 7 }])
    expect(again.prepare('select count(*) as n from sqlite_schema').get()).toEqual({ n: 1 })
    again.close()
    expect((await readFile(path)).length).toBe(before.length)
  })

  it(
    'a SQLite folder that is not writable is reported',
    needs(requirement('setpriv', noSetpriv)),
    async () => {
      const locked = join(folder, 'locked')
      await mkdir(locked)
      await chmod(locked, 0o555)
      await chmod(folder, 0o755)
      const child = startTestProcess(
        'open-repeatedly',
        { target: { kind: 'sqlite', path: join(locked, 'redrive.db') }, opens: 1 },
        isRoot ? giveUpRights : [],
      )
      await child.waitForReport('warm')
      child.send('go')
      const refused = await child.waitForReport('refused')
      child.send('close')
      await child.waitForExit()
      expect(refused.code).toBe('STORE_UNWRITABLE')
      expect(refused.message).toContain(locked)
    },
  )

  it('missing folders of a SQLite file are created', async () => {
    const storage = await openStorage(at('new/data/redrive.db'))
    await storage.ping()
    await storage.close()
  })
})

describe('a SQLite file that a server has open', () => {
  it('a second server in the same process is refused and does no harm', async () => {
    const testStore = await createTestStore('SQLite file')
    try {
      const first = await testStore.open()
      await run(first, { op: 'create-queue', queue: { name: 'work' }, now: noon })
      const error = await expectRefusal(testStore.open(), 'STORE_LOCKED')
      expect(error.message).toContain('redrive.db')
      await run(first, { op: 'produce', queue: 'work', partition: 0, items: newItems(1), now: noon })
      await expectConsistentStore(first)
      await first.close()
      const second = await testStore.open()
      expect(await second.readCounts({})).toMatchObject([{ waiting: 1 }])
    } finally {
      await testStore.drop()
    }
  })

  it('a file whose server is stopping is waited for', async () => {
    const testStore = await createTestStore('SQLite file')
    try {
      const first = await testStore.open()
      await run(first, { op: 'create-queue', queue: { name: 'work' }, now: noon })
      const waiting = testStore.open({ sqliteLockWaitMs: 60_000 })
      // Started later and refused: so the one that waits has met the lock.
      const error = await expectRefusal(testStore.open({ sqliteLockWaitMs: 100 }), 'STORE_LOCKED')
      expect(error.message).toMatch(
        /^another server has .*redrive\.db open and did not close it within 0\.1 s$/,
      )
      await first.close()
      expect(await (await waiting).listQueues({ countMax: 10 })).toHaveLength(1)
    } finally {
      await testStore.drop()
    }
  })

  it('a second server is refused under every other name of the file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-links-'))
    const at = (name: string): StoreTarget => ({ kind: 'sqlite', path: join(folder, name) })
    const first = await openStorage(at('redrive.db'))
    await symlink(join(folder, 'redrive.db'), join(folder, 'symbolic.db'))
    await expectRefusal(openStorage(at('symbolic.db')), 'STORE_LOCKED')
    await link(join(folder, 'redrive.db'), join(folder, 'hard.db'))
    const error = await expectRefusal(openStorage(at('hard.db')), 'STORE_LOCKED')
    expect(error.message).toContain('hard links')
    await first.close()
    await rm(folder, { recursive: true })
  })

  it('another process is refused until the first server ends or is killed', async () => {
    const testStore = await createTestStore('SQLite file')
    try {
      for (const how of ['kill', 'close'] as const) {
        const holder = startTestProcess('hold-store', { target: testStore.target })
        await holder.waitForReport('holds')
        await expectRefusal(testStore.open(), 'STORE_LOCKED')
        if (how === 'kill') await holder.kill()
        else {
          holder.send('close')
          await holder.waitForExit()
        }
        const storage = await testStore.open()
        expect(await storage.readCounts({})).toMatchObject([{ waiting: 1 }])
        await expectConsistentStore(storage)
        await run(storage, { op: 'delete-queue', name: 'work' })
        await storage.close()
      }
    } finally {
      await testStore.drop()
    }
  })
})

describe.each(['SQLite file', 'PostgreSQL'] as const)('reading a store (%s)', (name) => {
  it('a store is read while a server has it open, and cannot be changed', needsOf(name), async () => {
    const testStore = await createTestStore(name)
    try {
      const server = await testStore.open()
      await run(server, { op: 'create-queue', queue: { name: 'work' }, now: noon })
      await run(server, { op: 'produce', queue: 'work', partition: 0, items: newItems(3), now: noon })
      const reader = await openStorageToRead(testStore.target as FileTarget)
      expect(await reader.readCounts({})).toMatchObject([{ waiting: 3 }])
      expect(await reader.verify()).toEqual([])
      await reader.close()
      await run(server, { op: 'produce', queue: 'work', partition: 0, items: newItems(1), now: noon })
    } finally {
      await testStore.drop()
    }
  })

  it('a store without our tables is not created by reading it', needsOf(name), async () => {
    const testStore = await createTestStore(name)
    try {
      if (testStore.target.kind === 'sqlite') await writeFile(testStore.target.path, '')
      const code = testStore.target.kind === 'sqlite' ? 'SCHEMA_OLDER' : 'STORE_MISSING'
      await expectRefusal(openStorageToRead(testStore.target as FileTarget), code)
      await expectRefusal(testStore.open({ mustExist: true }), 'STORE_MISSING')
      let created = 0
      const onCreated = () => created++
      await (await testStore.open({ onCreated })).close()
      await (await testStore.open({ onCreated, mustExist: true })).close()
      expect(created).toBe(1)
    } finally {
      await testStore.drop()
    }
  })
})

describe('a PostgreSQL store that cannot be opened', needs(postgres), () => {
  const target = (change: (url: URL) => void): StoreTarget => {
    const url = new URL(postgres.url)
    change(url)
    return { kind: 'postgres', url: url.href }
  }
  const secret = 'not-the-password-4711'

  it('an unreachable PostgreSQL is reported with its address and without the password', async () => {
    const port = await findFreePort()
    const nowhere = target((url) => {
      url.port = `${port}`
      url.password = secret
    })
    const error = await expectRefusal(openStorage(nowhere), 'STORE_UNAVAILABLE')
    expect(error.message).toContain(`${port}`)
    expect(error.message).not.toContain(secret)
  })

  it('an unknown PostgreSQL host is reported by name', async () => {
    const nowhere = target((url) => {
      url.hostname = 'no-such-host.invalid'
    })
    const error = await expectRefusal(openStorage(nowhere), 'STORE_UNAVAILABLE')
    expect(error.message).toContain('no-such-host.invalid')
  })

  it('a wrong PostgreSQL password is reported without the password', async () => {
    const wrong = target((url) => {
      url.password = secret
    })
    const error = await expectRefusal(openStorage(wrong), 'STORE_REFUSED')
    expect(error.message).toMatch(/password|login/)
    expect(error.message).not.toContain(secret)
  })

  it('a missing PostgreSQL database is reported by name', async () => {
    const missing = target((url) => {
      url.pathname = '/no_such_database'
    })
    const error = await expectRefusal(openStorage(missing), 'STORE_REFUSED')
    expect(error.message).toContain('no_such_database')
  })

  it('a schema of another program is reported and not changed', async () => {
    const testStore = await createTestStore('PostgreSQL')
    try {
      await executeSql(
        testStore.target,
        () => 'create schema redrive; create table redrive.photos as select 7 as id',
      )
      await expectRefusal(testStore.open(), 'STORE_NOT_OURS')
      await executeSql(testStore.target, () => 'select 1 / (id - 6) from redrive.photos')
    } finally {
      await testStore.drop()
    }
  })
})
