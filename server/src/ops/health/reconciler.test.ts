import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bytes, minute, noon } from '../../../test/make.ts'
import type { Storage } from '../../storage/contract/storage.ts'
import { openStorage } from '../../storage/open-storage.ts'
import { createReconciler } from './reconciler.ts'

describe('the reconciler', () => {
  const lines: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => lines.push(line) })
  let folder: string
  let path: string
  let storage: Storage
  let now = noon

  const createTestReconciler = (owner: string) =>
    createReconciler({
      storage: () => storage,
      engine: () => storage,
      clock: { now: () => now },
      owner,
      intervalUs: 10 * minute,
      log,
    })

  /** Writes a count that differs from the rows, which no command can do. */
  const corruptCount = () => {
    const database = new DatabaseSync(path, { timeout: 5_000 })
    database.exec('update counts set waiting = waiting + 5')
    database.close()
  }

  beforeEach(async () => {
    lines.length = 0
    now = noon
    folder = mkdtempSync(join(tmpdir(), 'redrive-reconciler-'))
    path = join(folder, 'store.db')
    storage = await openStorage({ kind: 'sqlite', path })
    await storage.write([
      { op: 'create-queue', queue: { name: 'orders' }, now },
      { op: 'produce', queue: 'orders', partition: 0, items: [{ payload: bytes('one') }], now },
    ])
  })

  afterEach(async () => {
    await storage.close()
    rmSync(folder, { recursive: true })
  })

  it('the reconciler finds no difference when every count was written with its rows', async () => {
    const reconciler = createTestReconciler('server-1')
    await reconciler.pass()
    expect(reconciler.state()).toEqual({ at: noon, differences: 0, differencesTotal: 0 })
    expect(lines).toEqual([])
  })

  it('the reconciler repairs a wrong count and logs it as an error', async () => {
    corruptCount()
    const reconciler = createTestReconciler('server-1')
    await reconciler.pass()
    // The count, and the sum of counts that no longer matches.
    expect(reconciler.state()).toMatchObject({ differences: 2, differencesTotal: 2 })
    expect(lines.join('')).toContain(
      'count waiting of queue orders, partition 0 was 6 but the rows show 1; repaired',
    )
    expect(await storage.verify()).toEqual([])
    expect(await storage.readCounts({ queue: 'orders' })).toMatchObject([{ waiting: 1, accepted: 1 }])
  })

  it('the reconciler runs on one server per interval, and on another server when the first one is gone', async () => {
    const [first, second] = [createTestReconciler('server-1'), createTestReconciler('server-2')]
    await first.pass()
    await second.pass()
    expect([first.state().at, second.state().at]).toEqual([noon, null])
    now = noon + 10 * minute
    await second.pass()
    expect(second.state().at).toBe(now)
  })
})
