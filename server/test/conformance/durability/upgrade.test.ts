import { readFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { searchLetters } from '../../../src/storage/search/search-letters.ts'
import { readContent } from '../../fixtures/schema-versions/populate.ts'
import {
  type FileTarget,
  hasFixture,
  readExpectedContent,
  restoreUnrecordedFile,
  restoreVersion,
  versions,
} from '../../fixtures/schema-versions/store-rows.ts'
import { newItems, noon } from '../../make.ts'
import { executeSql } from '../support/execute-sql.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { run } from '../support/store-reads.ts'
import { createTestStore, needsOf, type StoreName, type TestStore } from '../support/test-stores.ts'

async function withTestStore(name: StoreName, test: (testStore: TestStore) => Promise<void>): Promise<void> {
  const testStore = await createTestStore(name)
  try {
    await test(testStore)
  } finally {
    await testStore.drop()
  }
}

const targetOf = (testStore: TestStore) => testStore.target as FileTarget

async function expectUpgraded(testStore: TestStore, version: string): Promise<void> {
  const storage = await testStore.open()
  const expected = readExpectedContent(version, targetOf(testStore).kind)
  expect(await readContent(storage)).toEqual(expected)
  await expectConsistentStore(storage)
  const queue = expected.queues.find(({ deadQueue }) => deadQueue !== null)?.name ?? ''
  const now = noon + 50 * 86_400_000_000
  await run(storage, { op: 'produce', queue, partition: 0, items: newItems(2, 'after'), now })
  await run(storage, { op: 'advance', now, countMax: 1_000 })
  expect(await run(storage, { op: 'lease', queue, partition: 0, holders: ['w'], now })).toHaveLength(1)
  await expectConsistentStore(storage)
}

/** These migrations were released together with later ones: no database has one of them as its newest. */
const releasedWithLaterOnes = [
  '0014_message-pruning',
  '0015_workers',
  '0016_alerts',
  '0017_queue-deletions',
  '0018_disk-reserve',
]

describe('the databases of all schema versions', () => {
  it('each released schema version has a database to upgrade', () => {
    const released = versions.filter((version) => !releasedWithLaterOnes.includes(version))
    const missing = released.filter((version) => !hasFixture(version))
    expect(missing, 'run: node server/test/fixtures/schema-versions/write-fixture.ts').toEqual([])
  })
})

for (const name of ['SQLite file', 'PostgreSQL'] satisfies StoreName[]) {
  describe(`upgrading a database with data (${name})`, needsOf(name), () => {
    it.each(versions.filter(hasFixture))(
      'a database of version %s keeps its data and works',
      async (version) => {
        await withTestStore(name, async (testStore) => {
          await restoreVersion(targetOf(testStore), version)
          await expectUpgraded(testStore, version)
        })
      },
    )

    it('letters of an earlier version are found by the ids of their redrives after the upgrade', async () => {
      await withTestStore(name, async (testStore) => {
        await restoreVersion(targetOf(testStore), '0002_dlq-statements')
        const storage = await testStore.open()
        const query = {
          filter: {},
          order: 'deadLetteredAt',
          isDescending: true,
          countMax: 1_000,
          bytes: 'none',
        } as const
        const { found } = await searchLetters(storage, query)
        const redriven = found.flatMap(({ item }) =>
          (item.letter?.redrives ?? []).map(({ target }) => ({ letterId: item.rootId, id: target.id })),
        )
        expect(redriven.length).toBeGreaterThan(0)
        const known = await storage.findLetterIds(redriven.map(({ id }) => id))
        expect(known).toEqual(expect.arrayContaining(redriven))
      })
    })

    it('a store that ran another form of a migration is refused with a hint and not changed', async () => {
      await withTestStore(name, async (testStore) => {
        await (await testStore.open()).close()
        const edit = (checksum: string) =>
          executeSql(testStore.target, (schema) => `update ${schema}migrations set checksum = '${checksum}'`)
        await edit('0123456789abcdef')
        const error = await expectRefusal(testStore.open(), 'SCHEMA_DIFFERS')
        expect(error.message).toMatch(
          /created by a different build of Redrive: it has run migration number 1, 0001_foundation, checksum 0123456789ab; this program has number 1, 0001_foundation, checksum [0-9a-f]{12}$/,
        )
        expect(error.hint).toContain('Run the build that created this store')
      })
    })
  })
}

describe('a SQLite file that has no record of its migrations', () => {
  const [first = ''] = versions

  it('a file with the tables of version 1 is adopted with its data, and records its migrations', async () => {
    await withTestStore('SQLite file', async (testStore) => {
      const target = testStore.target as Extract<FileTarget, { kind: 'sqlite' }>
      restoreUnrecordedFile(target.path)
      await expectUpgraded(testStore, first)
      const database = new DatabaseSync(target.path, { readOnly: true })
      const recorded = database.prepare('select number, name from migrations').all()
      database.close()
      expect(recorded).toEqual(versions.map((version, index) => ({ number: index + 1, name: version })))
    })
  })

  it.each([
    ['a missing column', 'alter table campaigns drop column sent_until', 'table campaigns'],
    ['a missing index', 'drop index items_redrive', 'index items_redrive'],
    ['another table', 'create table campaign_sends (id integer)', 'table campaign_sends'],
  ])('a file with %s is refused with its name and not changed', async (_, change, named) => {
    await withTestStore('SQLite file', async (testStore) => {
      const target = testStore.target as Extract<FileTarget, { kind: 'sqlite' }>
      restoreUnrecordedFile(target.path)
      await executeSql(target, () => `${change}; pragma wal_checkpoint(truncate)`)
      const before = await readFile(target.path)
      const error = await expectRefusal(testStore.open(), 'SCHEMA_DIFFERS')
      expect(error.message).toContain(`redrive.db was created by a different build of Redrive: `)
      expect(error.message).toContain(`${named} `)
      expect(before.equals(await readFile(target.path))).toBe(true)
    })
  })
})
