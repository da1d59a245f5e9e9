import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { aFailure, anOrigin, noon } from '../../../../test/make.ts'
import { Database } from '../connection/database.ts'
import { openFile } from '../connection/database-file.ts'
import { openSqlite } from '../sqlite-storage.ts'
import { Checkpointer, checkpoint, WalState, walPagesMax } from './wal.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-log-'))
  path = join(folder, 'redrive.db')
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the log of a file', () => {
  it('is brought into the file by a thread where many letters come', async () => {
    const storage = await openSqlite({ kind: 'sqlite', path })
    const letter = { payload: new Uint8Array(10_000), origin: anOrigin(), failure: aFailure() }
    const items = Array.from({ length: 500 }, () => letter)
    await storage.write([
      { op: 'create-queue', queue: { name: 'dead' }, now: noon },
      { op: 'import', queue: 'dead', partition: 0, items, now: noon },
    ])
    // No other commit comes that could do it.
    await vi.waitFor(() => expect(statSync(path).size).toBeGreaterThan(4_000_000), 10_000)
    await storage.close()
  })

  it('begins anew once all of it is in the file, and does not while somebody reads from it', () => {
    const writer = openFile(path, 'full')
    const reader = new Database(path, { isReadOnly: true })
    const log = new WalState(WalState.share())
    const logBytes = () => statSync(`${path}-wal`).size
    const write = () =>
      writer.exec('create table if not exists t (b blob); insert into t values (zeroblob(1000000))')
    const look = () => reader.get('select count(*) as n from t')?.n

    write()
    reader.exec('begin')
    expect(look()).toBe(1)
    write()
    expect(checkpoint(writer, log)).toBe(false)
    expect(log.pages).toBeGreaterThan(250)
    expect(look()).toBe(1)
    reader.exec('commit')

    expect(checkpoint(writer, log)).toBe(true)
    expect(log.pages).toBe(0)
    const before = logBytes()
    for (let time = 0; time < 5; time++) {
      write()
      expect(checkpoint(writer, log)).toBe(true)
    }
    expect(logBytes()).toBe(before)
    reader.close()
    writer.close()
  })

  it('is brought in by commits, and not where many letters come until it is long', () => {
    const writer = openFile(path, 'full')
    const log = new WalState(WalState.share())
    const keeper = new Checkpointer(writer, log)
    const fileBytes = () => statSync(path).size
    const commit = (letters: number, nowMs: number) => {
      keeper.beforeCommit(letters, nowMs)
      writer.exec('create table if not exists t (b blob); insert into t values (zeroblob(6000000))')
      keeper.checkpointIfLong()
    }

    commit(0, 0)
    const first = fileBytes()
    expect(first).toBeGreaterThan(6_000_000)
    expect(log.commits).toBe(0)
    commit(1_000, 10)
    commit(0, 20)
    expect(fileBytes()).toBe(first)
    expect(log.commits).toBe(2)
    // As the thread says that looked at it.
    log.pages = walPagesMax
    commit(1_000, 30)
    const second = fileBytes()
    expect(second).toBeGreaterThan(first + 18_000_000)
    expect(log.pages).toBe(0)
    commit(0, 2_000)
    expect(fileBytes()).toBeGreaterThan(second)
    writer.close()
  })
})
