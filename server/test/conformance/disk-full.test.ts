/**
 * A disk that is full. Where we may mount (as root, or in a user namespace of our own) it is a small
 * tmpfs; a limit on the size of files works everywhere, and looks the same to the store.
 */
import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { findUnprivilegedUser } from '../../../tools/services/process/unprivileged-user.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { noon } from '../make.ts'
import { ability, whyNot } from './ability.ts'
import { type Line, startChild } from './children/start.ts'
import { fillUp } from './fill-up.ts'
import { expectKnown } from './known-error.ts'
import { expectSound } from './oracle.ts'
import { listAll, run } from './store-facts.ts'
import { createPlace } from './stores.ts'

const execute = promisify(execFile)
const mebibyte = 1024 * 1024

const namespaces = await whyNot('unshare', [
  '--map-root-user',
  '--mount',
  'mount',
  '-t',
  'tmpfs',
  'none',
  tmpdir(),
])
const prlimit = await whyNot('prlimit', ['--version'])
const mounts = process.getuid?.() === 0 ? namespaces : 'only root can mount a disk for another process'
const smallDisk = ability('a small tmpfs in a namespace of our own', namespaces)
const mountedDisk = ability('a small tmpfs', mounts)
const limits = ability('prlimit', prlimit)
const ownPostgres = mounts === undefined ? await requireService('privatePostgres') : undefined

describe('SQLite on a full disk', needs(smallDisk), () => {
  it('a full disk is reported, nothing is lost, and writes continue when there is space', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-disk-full-'))
    try {
      const ballast = join(folder, 'ballast')
      const inSmallDisk =
        'mount -t tmpfs -o size=8m none "$0" && head -c 3m /dev/zero > "$0/ballast" && exec "$@"'
      const child = startChild(
        'fill',
        { target: { kind: 'sqlite', path: join(folder, 'redrive.db') }, ballast, countMax: 1_000 },
        ['unshare', '--map-root-user', '--mount', 'sh', '-c', inSmallDisk, folder],
      )
      const full = await child.heard('full')
      child.say('freed')
      const lines = await child.ended()
      expectClear(full)
      expectNothingLost(lines)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('SQLite at a limit on the size of files', needs(limits), () => {
  // The soft limit only, in bytes: we may lift it again from outside.
  const limited = ['prlimit', `--fsize=${2 * mebibyte}:`]

  it('a file size limit is reported, nothing is lost, and writes continue without the limit', async () => {
    const place = await createPlace('SQLite file')
    try {
      const child = startChild('fill', { target: place.target, countMax: 1_000 }, limited)
      const full = await child.heard('full')
      await child.heard('sound')
      await execute('prlimit', ['--pid', `${child.process.pid}`, '--fsize=unlimited:'])
      child.say('freed')
      const lines = await child.ended()
      expectClear(full)
      expectNothingLost(lines)
    } finally {
      await place.drop()
    }
  })

  it.each(['closed', 'killed'])(
    'a store on a full disk opens elsewhere with nothing lost after it was %s',
    async (how) => {
      const place = await createPlace('SQLite file')
      try {
        const mustCloseFull = how === 'closed'
        const child = startChild('fill', { target: place.target, countMax: 1_000, mustCloseFull }, limited)
        await child.heard('sound')
        const lines = mustCloseFull ? await child.ended() : await child.kill()
        const storage = await place.open()
        const names = (await listAll(storage, 'work')).map((item) => item.reference)
        expect(names).toEqual(keptNames(lines))
        expect(await fillUp(storage, 'second', 200, names)).toBeUndefined()
        await expectSound(storage)
      } finally {
        await place.drop()
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
      expectKnown(await fillUp(storage, 'first', 5_000, kept), 'STORE_FULL')
      expect(kept.length).toBeGreaterThan(10)
      expect((await listAll(storage, 'work')).map((item) => item.reference)).toEqual(kept)
      await expectSound(storage)

      await rm(join(folder, 'ballast'))
      expect(await fillUp(storage, 'second', 5, kept)).toBeUndefined()
      await storage.close()
      const again = await openStorage({ kind: 'postgres', url: url.href })
      expect((await listAll(again, 'work')).map((item) => item.reference)).toEqual(kept)
      await expectSound(again)
      await again.close()
    } finally {
      // The server has files open there.
      await ownPostgres.end()
      await execute('umount', [folder])
      await rm(folder, { recursive: true })
    }
  })
})

function expectClear(full: Line): void {
  expect(full.code, String(full.message)).toBe('STORE_FULL')
  expect(full.message).toContain('redrive.db')
}

function expectNothingLost(lines: readonly Line[]): void {
  const line = (is: string): Line | undefined => lines.findLast((each) => each.is === is)
  const firstKept = lines.find((each) => each.is === 'kept')?.names as string[]
  expect(firstKept.length, 'some were written before the disk was full').toBeGreaterThan(10)
  expect(line('sound')).toEqual({ is: 'sound', differences: [], there: firstKept.length })
  expect(line('recovered')).toEqual({ is: 'recovered', error: null })
  expect(line('reopened')).toEqual({ is: 'reopened', names: keptNames(lines), differences: [] })
}

function keptNames(lines: readonly Line[]): string[] {
  return lines.findLast((line) => line.is === 'kept')?.names as string[]
}
