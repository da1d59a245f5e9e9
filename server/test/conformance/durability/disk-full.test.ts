/**
 * A full disk. If the test may mount (as root or in a user namespace), it is a small tmpfs. A file size limit
 * works everywhere and looks the same to the store.
 */
import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { findUnprivilegedUser } from '../../../../tools/services/process/unprivileged-user.ts'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { noon } from '../../make.ts'
import { type Report, startTestProcess } from '../processes/start-process.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { expectKnown, expectRefusal } from '../support/expect-refusal.ts'
import { findObstacle, requirement } from '../support/machine-requirements.ts'
import { produceUntilFull } from '../support/produce-until-full.ts'
import { listAll, run } from '../support/store-reads.ts'
import { createTestStore } from '../support/test-stores.ts'

const execute = promisify(execFile)
const mebibyte = 1024 * 1024

const namespaces = await findObstacle('unshare', [
  '--map-root-user',
  '--mount',
  'mount',
  '-t',
  'tmpfs',
  'none',
  tmpdir(),
])
const prlimit = await findObstacle('prlimit', ['--version'])
const mounts = process.getuid?.() === 0 ? namespaces : 'only root can mount a disk for another process'
const smallDisk = requirement('a small tmpfs in a namespace of our own', namespaces)
const mountedDisk = requirement('a small tmpfs', mounts)
const limits = requirement('prlimit', prlimit)
const ownPostgres = mounts === undefined ? await requireService('privatePostgres') : undefined

describe('SQLite on a full disk', needs(smallDisk), () => {
  it('a full disk is reported, nothing is lost, and writes continue when there is space', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-disk-full-'))
    try {
      const ballast = join(folder, 'ballast')
      const inSmallDisk =
        'mount -t tmpfs -o size=8m none "$0" && head -c 3m /dev/zero > "$0/ballast" && exec "$@"'
      const child = startTestProcess(
        'fill-disk',
        { target: { kind: 'sqlite', path: join(folder, 'redrive.db') }, ballast, countMax: 1_000 },
        ['unshare', '--map-root-user', '--mount', 'sh', '-c', inSmallDisk, folder],
      )
      const full = await child.waitForReport('full')
      child.send('freed')
      const lines = await child.waitForExit()
      expectClear(full)
      expectNothingLost(lines)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('a server whose SQLite file is on a full disk', needs(smallDisk), () => {
  it('health reports the full disk, and completing, deleting and discarding still work', {
    timeout: 60_000,
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-disk-full-'))
    try {
      const ballast = join(folder, 'ballast')
      const inSmallDisk =
        'mount -t tmpfs -o size=24m none "$0" && head -c 8m /dev/zero > "$0/ballast" && exec "$@"'
      const child = startTestProcess(
        'serve-full-disk',
        { target: { kind: 'sqlite', path: join(folder, 'redrive.db') }, ballast },
        ['unshare', '--map-root-user', '--mount', 'sh', '-c', inSmallDisk, folder],
      )
      const lines = await child.waitForExit()
      const find = (kind: string) => lines.find((line) => line.kind === kind)
      expect(find('refused')).toMatchObject({ status: 454 })
      expect(find('refused')?.message).toContain('no space left to write to the store')
      expect(find('health')).toMatchObject({ ready: 503 })
      expect(find('health')?.output).toContain('no space left to write to the store')
      expect(find('works')).toEqual({ kind: 'works', complete: 200, delete: 200, discard: 200, produce: 454 })
      expect(find('recovered')).toEqual({ kind: 'recovered', produce: 200, ready: 200 })
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('SQLite at a limit on the size of files', needs(limits), () => {
  // Only the soft limit, in bytes: the test can raise it again.
  const limited = ['prlimit', `--fsize=${2 * mebibyte}:`]

  it('a file size limit is reported, nothing is lost, and writes continue without the limit', async () => {
    const testStore = await createTestStore('SQLite file')
    try {
      const child = startTestProcess('fill-disk', { target: testStore.target, countMax: 1_000 }, limited)
      const full = await child.waitForReport('full')
      await child.waitForReport('verified')
      await execute('prlimit', ['--pid', `${child.process.pid}`, '--fsize=unlimited:'])
      child.send('freed')
      const lines = await child.waitForExit()
      expectClear(full)
      expectNothingLost(lines)
    } finally {
      await testStore.drop()
    }
  })

  it.each(['closed', 'killed'])(
    'a store on a full disk opens elsewhere with nothing lost after it was %s',
    async (how) => {
      const testStore = await createTestStore('SQLite file')
      try {
        const mustCloseFull = how === 'closed'
        const child = startTestProcess(
          'fill-disk',
          { target: testStore.target, countMax: 1_000, mustCloseFull },
          limited,
        )
        await child.waitForReport('verified')
        const lines = mustCloseFull ? await child.waitForExit() : await child.kill()
        const storage = await testStore.open()
        const names = (await listAll(storage, 'work')).map((item) => item.reference)
        expect(names).toEqual(keptNames(lines))
        expect(await produceUntilFull(storage, 'second', 200, names)).toBeUndefined()
        await expectConsistentStore(storage)
      } finally {
        await testStore.drop()
      }
    },
  )
})

describe('PostgreSQL on a full disk', needs(mountedDisk, ...(ownPostgres ? [ownPostgres] : [])), () => {
  it('a full disk is reported, nothing is lost, and writes continue when there is space', {
    timeout: 60_000,
  }, async () => {
    if (ownPostgres === undefined) throw new Error('this test is skipped then')
    const folder = await mkdtemp(join(tmpdir(), 'redrive-disk-full-'))
    await execute('mount', ['-t', 'tmpfs', '-o', 'size=32m,mode=700', 'none', folder])
    try {
      const user = await findUnprivilegedUser()
      if (user !== undefined) await chown(folder, user.uid, user.gid)
      const client = new Client({ connectionString: ownPostgres.url })
      await client.connect()
      await client.query(`create tablespace small location '${folder}'`)
      await client.query('create database on_small tablespace small')
      await client.end()
      await writeFile(join(folder, 'ballast'), new Uint8Array(12 * mebibyte))

      const url = new URL(ownPostgres.url)
      url.pathname = '/on_small'
      const storage = await openStorage({ kind: 'postgres', url: url.href })
      await run(storage, { op: 'create-queue', queue: { name: 'work' }, now: noon })
      const kept: string[] = []
      expectKnown(await produceUntilFull(storage, 'first', 5_000, kept), 'STORE_FULL')
      await expectRefusal(storage.ping(), 'STORE_FULL')
      expect(kept.length).toBeGreaterThan(10)
      expect((await listAll(storage, 'work')).map((item) => item.reference)).toEqual(kept)
      await expectConsistentStore(storage)

      await rm(join(folder, 'ballast'))
      await storage.ping()
      expect(await produceUntilFull(storage, 'second', 5, kept)).toBeUndefined()
      await storage.close()
      const again = await openStorage({ kind: 'postgres', url: url.href })
      expect((await listAll(again, 'work')).map((item) => item.reference)).toEqual(kept)
      await expectConsistentStore(again)
      await again.close()
    } finally {
      // The server still has open files there.
      await ownPostgres.end()
      await execute('umount', [folder])
      await rm(folder, { recursive: true })
    }
  })
})

function expectClear(full: Report): void {
  expect(full.code, String(full.message)).toBe('STORE_FULL')
  expect(full.message).toContain('redrive.db')
}

function expectNothingLost(lines: readonly Report[]): void {
  const line = (kind: string): Report | undefined => lines.findLast((each) => each.kind === kind)
  const firstKept = lines.find((each) => each.kind === 'kept')?.names as string[]
  expect(firstKept.length, 'some were written before the disk was full').toBeGreaterThan(10)
  expect(line('verified')).toEqual({ kind: 'verified', differences: [], itemCount: firstKept.length })
  expect(line('recovered')).toEqual({ kind: 'recovered', error: null })
  expect(line('reopened')).toEqual({ kind: 'reopened', names: keptNames(lines), differences: [] })
}

function keptNames(lines: readonly Report[]): string[] {
  return lines.findLast((line) => line.kind === 'kept')?.names as string[]
}
