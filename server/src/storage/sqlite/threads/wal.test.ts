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
  folder = mkdtempSync(join(tmpdir(), 'redrive-wal-'))
  path = join(folder, 'redrive.db')
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the WAL of a file', () => {
  it('a thread copies the WAL into the file while many letters are written', async () => {
    const storage = await openSqlite({ kind: 'sqlite', path })
    const letter = { payload: new Uint8Array(10_000), origin: anOrigin(), failure: aFailure() }
    const items = Array.from({ length: 500 }, () => letter)
    await storage.write([
      { op: 'create-queue', queue: { name: 'dead' }, now: noon },
      { op: 'import', queue: 'dead', partition: 0, items, now: noon },
    ])
    // No other commit follows that could checkpoint.
    await vi.waitFor(() => expect(statSync(path).size).toBeGreaterThan(4_000_000), 10_000)
    await storage.close()
  })

  it('the WAL restarts once all of it is in the file, and not while a reader needs it', () => {
    const writer = openFile(path, 'full')
    const reader = new Database(path, { isReadOnly: true })
    const wal = new WalState(WalState.allocate())
    const walBytes = () => statSync(`${path}-wal`).size
    const write = () =>
      writer.exec('create table if not exists t (b blob); insert into t values (zeroblob(1000000))')
    const look = () => reader.get('select count(*) as n from t')?.n

    write()
    reader.exec('begin')
    expect(look()).toBe(1)
    write()
    expect(checkpoint(writer, wal)).toBe(false)
    expect(wal.pages).toBeGreaterThan(250)
    expect(look()).toBe(1)
    reader.exec('commit')

    expect(checkpoint(writer, wal)).toBe(true)
    expect(wal.pages).toBe(0)
    const before = walBytes()
    for (let time = 0; time < 5; time++) {
      write()
      expect(checkpoint(writer, wal)).toBe(true)
    }
    expect(walBytes()).toBe(before)
    reader.close()
    writer.close()
  })

  it('commits checkpoint the WAL; with many letters they do so only when it is long', () => {
    const writer = openFile(path, 'full')
    const wal = new WalState(WalState.allocate())
    const checkpointer = new Checkpointer(writer, wal)
    const fileBytes = () => statSync(path).size
    const commit = (letters: number, nowMs: number) => {
      checkpointer.beforeCommit(letters, nowMs)
      writer.exec('create table if not exists t (b blob); insert into t values (zeroblob(6000000))')
      checkpointer.checkpointIfLong()
    }

    commit(0, 0)
    const first = fileBytes()
    expect(first).toBeGreaterThan(6_000_000)
    expect(wal.commits).toBe(0)
    commit(1_000, 10)
    commit(0, 20)
    expect(fileBytes()).toBe(first)
    expect(wal.commits).toBe(2)
    // The checkpoint thread reports this length.
    wal.pages = walPagesMax
    commit(1_000, 30)
    const second = fileBytes()
    expect(second).toBeGreaterThan(first + 18_000_000)
    expect(wal.pages).toBe(0)
    commit(0, 2_000)
    expect(fileBytes()).toBeGreaterThan(second)
    writer.close()
  })
})
