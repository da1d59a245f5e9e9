import { describe, expect, it } from 'vitest'
import { migrations } from '../../../src/storage/sqlite/migrations/migrate.ts'
import { newItems, noon } from '../../make.ts'
import { startTestProcess } from '../processes/start-process.ts'
import { executeSql } from '../support/execute-sql.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { run } from '../support/store-reads.ts'
import { createTestStore, needsOf, type StoreName, type TestStore } from '../support/test-stores.ts'

const processes = 5
const opensEach = 4

for (const name of ['SQLite file', 'PostgreSQL'] satisfies StoreName[]) {
  describe(`the schema (${name})`, needsOf(name), () => {
    const inNewPlace = async (test: (testStore: TestStore) => Promise<void>) => {
      const testStore = await createTestStore(name)
      try {
        await test(testStore)
      } finally {
        await testStore.drop()
      }
    }

    it('the first open creates the schema, and the next leaves it unchanged', async () => {
      await inNewPlace(async (testStore) => {
        for (let open = 0; open < 3; open++) {
          const storage = await testStore.open()
          if (open === 0) await run(storage, { op: 'create-queue', queue: { name: 'work' }, now: noon })
          await run(storage, { op: 'produce', queue: 'work', partition: 0, items: newItems(1), now: noon })
          await storage.close()
        }
        const storage = await testStore.open()
        expect(await storage.readCounts({})).toMatchObject([{ waiting: 3 }])
        await expectConsistentStore(storage)
      })
    })

    it('a schema newer than the program is refused with both versions', async () => {
      await inNewPlace(async (testStore) => {
        const first = await testStore.open()
        await run(first, { op: 'create-queue', queue: { name: 'work' }, now: noon })
        await first.close()
        const isSqlite = testStore.target.kind === 'sqlite'
        await executeSql(testStore.target, (schema) =>
          isSqlite
            ? 'pragma user_version = 4711'
            : `insert into ${schema}migrations (number, name, checksum, applied_at)
             select n, 'later', '', now() from generate_series((select max(number) + 1 from ${schema}migrations), 4711) n`,
        )
        const error = await expectRefusal(testStore.open(), 'SCHEMA_NEWER')
        expect(error.message).toMatch(/4711\b.*\b\d{1,3}\b/)
        // After the version is restored, everything is there.
        await executeSql(testStore.target, (schema) =>
          isSqlite
            ? `pragma user_version = ${migrations.length}`
            : `delete from ${schema}migrations where name = 'later'`,
        )
        const again = await testStore.open()
        expect(await again.listQueues({ countMax: 10 })).toHaveLength(1)
      })
    })

    it('twenty servers that start at once create the schema once', async () => {
      await inNewPlace(async (testStore) => {
        const children = Array.from({ length: processes }, () =>
          startTestProcess('open-repeatedly', { target: testStore.target, opens: opensEach }),
        )
        await Promise.all(children.map((child) => child.waitForReport('warm')))
        for (const child of children) child.send('go')
        await Promise.all(children.map((child) => child.waitForReport('tried')))
        const lines = children.flatMap((child) => child.reports)
        const opened = lines.filter((line) => line.kind === 'opened')
        const refused = lines.filter((line) => line.kind === 'refused')

        if (name === 'PostgreSQL') {
          expect(refused).toEqual([])
          expect(opened).toHaveLength(processes * opensEach)
        } else {
          // A file serves one server: exactly one opens it, and the others get the reason.
          expect(opened).toHaveLength(1)
          expect(refused).toHaveLength(processes * opensEach - 1)
          for (const line of refused) {
            expect(line.code, String(line.message)).toBe('STORE_LOCKED')
            expect(line.message).toContain('redrive.db')
          }
          await expectRefusal(testStore.open(), 'STORE_LOCKED')
        }
        for (const child of children) child.send('close')
        await Promise.all(children.map((child) => child.waitForExit()))

        const storage = await testStore.open()
        await storage.write([
          { op: 'create-queue', queue: { name: 'work' }, now: noon },
          { op: 'produce', queue: 'work', partition: 0, items: newItems(3), now: noon },
        ])
        await expectConsistentStore(storage)
      })
    })
  })
}
