/** Groups from before templates: their letters keep their groups, and new letters get new ones. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { needs } from '../../../../tools/services/require-service.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { Database } from '../../../src/storage/sqlite/connection/database.ts'
import { aFailure, noon } from '../../make.ts'
import { testDatabase } from '../../postgres.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { aLetter } from '../support/letter-actions.ts'
import { run } from '../support/store-reads.ts'
import { postgres } from '../support/test-stores.ts'

const asBefore = (table: string): string =>
  `update ${table} set fingerprint = '0123456789abcdef', bucket = '', template = '', cause_key = ''`

async function capture(storage: Storage): Promise<void> {
  const items = [aLetter({ failure: aFailure({ message: 'HTTP 503 from partner' }) })]
  await run(storage, { op: 'import', queue: 'dead', partition: 0, items, now: noon })
}

async function expectTwoGroups(storage: Storage): Promise<void> {
  await capture(storage)
  await capture(storage)
  const groups = await storage.listGroups({ filter: {}, isEmptyToo: true, countMax: 10 })
  const counts = groups.map(({ fingerprint, count }) => [fingerprint === '0123456789abcdef', count])
  expect(counts.toSorted()).toEqual([
    [false, 2],
    [true, 1],
  ])
  await expectConsistentStore(storage)
}

describe('groups from before templates', () => {
  it('SQLite: letters keep their group, and new letters of the cause get a new one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-groups-'))
    const path = join(folder, 'redrive.db')
    const first = await openStorage({ kind: 'sqlite', path })
    await run(first, { op: 'create-queue', queue: { name: 'dead' }, now: noon })
    await capture(first)
    await first.close()
    const database = new Database(path)
    database.exec(asBefore('groups'))
    database.close()
    const again = await openStorage({ kind: 'sqlite', path })
    await expectTwoGroups(again)
    await again.close()
    rmSync(folder, { recursive: true })
  })

  it(
    'PostgreSQL: letters keep their group, and new letters of the cause get a new one',
    needs(postgres),
    async () => {
      await using database = await testDatabase()
      const first = await database.open()
      await run(first, { op: 'create-queue', queue: { name: 'dead' }, now: noon })
      await capture(first)
      await first.close()
      await database.rows(asBefore('redrive.groups'))
      await expectTwoGroups(await database.open())
    },
  )
})
