import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { noon } from '../../../test/make.ts'
import { Database } from './database.ts'
import { openFile } from './file.ts'
import { bringIn, Log } from './log.ts'
import { openSqlite } from './open.ts'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-log-'))
  path = join(folder, 'redrive.db')
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the log of a file', () => {
  it('is brought into the file while the store is open', async () => {
    const storage = await openSqlite({ kind: 'sqlite', path })
    const items = Array.from({ length: 100 }, () => ({ payload: new Uint8Array(10_000) }))
    await storage.write([
      { op: 'create-queue', queue: { name: 'work' }, now: noon },
      { op: 'produce', queue: 'work', partition: 0, items, now: noon },
    ])
    // A commit does it only when the log is a hundred times as long.
    await vi.waitFor(() => expect(statSync(path).size).toBeGreaterThan(1_000_000), 10_000)
    await storage.close()
  })

  it('begins anew once all of it is in the file, and does not while somebody reads from it', () => {
    const writer = openFile(path, 'full')
    const reader = new Database(path, { isReadOnly: true })
    const log = new Log(Log.share())
    const logBytes = () => statSync(`${path}-wal`).size
    const write = () =>
      writer.exec('create table if not exists t (b blob); insert into t values (zeroblob(1000000))')
    const look = () => reader.get('select count(*) as n from t')?.n

    write()
    reader.exec('begin')
    expect(look()).toBe(1)
    write()
    expect(bringIn(writer, log)).toBe(false)
    expect(log.pages).toBeGreaterThan(250)
    expect(look()).toBe(1)
    reader.exec('commit')

    expect(bringIn(writer, log)).toBe(true)
    expect(log.pages).toBe(0)
    const before = logBytes()
    for (let time = 0; time < 5; time++) {
      write()
      expect(bringIn(writer, log)).toBe(true)
    }
    expect(logBytes()).toBe(before)
    reader.close()
    writer.close()
  })
})
