/** The audit log cannot be changed unnoticed: the database refuses changes, and the chains show them. */
import { expect, it } from 'vitest'
import type { AuditEntry } from '../../../src/storage/contract/audit.ts'
import { readAuditLog, verifyAudit } from '../../../src/storage/shared/audit/verify-audit.ts'
import { noon } from '../../make.ts'
import { executeSql } from '../support/execute-sql.ts'
import {
  createTestStore,
  describeDurableStores,
  describeStores,
  describeTheseStores,
} from '../support/test-stores.ts'

const anEntry = (target: string, changes: Partial<AuditEntry> = {}): AuditEntry => ({
  at: noon,
  actor: 'ann',
  action: 'queue.clear',
  target,
  reason: 'test data “ä” 注文 🧾',
  requestId: 'req-1',
  details: { count: 3 },
  ...changes,
})
const someEntries = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => anEntry(`${prefix}-${index + 1}`))

describeStores('the chains of the audit log', (given) => {
  it('every row is linked to the row before it', async () => {
    await given.run({ op: 'audit', entries: someEntries('a', 3) })
    await given.storage.write([
      { op: 'audit', entries: someEntries('b', 1) },
      { op: 'audit', entries: [] },
      {
        op: 'audit',
        entries: [anEntry('c', { namespace: 'north', address: '10.0.0.7', keyPrefix: 'qtr-live-1' })],
      },
    ])
    const before = await verifyAudit(given.storage)
    expect(before.faults).toEqual([])
    expect(before.checked).toBeGreaterThanOrEqual(5)
    const [row] = await given.storage.listAudit({ target: 'c', countMax: 1 })
    expect(row).toMatchObject({ namespace: 'north', address: '10.0.0.7', keyPrefix: 'qtr-live-1' })
  })

  it('a rejected write leaves no gap in a chain', async () => {
    const before = await verifyAudit(given.storage)
    const rejected = given.storage.write([
      { op: 'audit', entries: someEntries('never', 2) },
      { op: 'delete-queue', name: 'nowhere' },
    ])
    const kept = given.run({ op: 'audit', entries: someEntries('kept', 1) })
    await expect(rejected).rejects.toThrow()
    await kept
    const after = await verifyAudit(given.storage)
    expect(after.faults).toEqual([])
    expect(after.checked).toBe(before.checked + 1)
  })

  it('concurrent writers leave chains without a gap', async () => {
    const before = await verifyAudit(given.storage)
    const counts = Array.from({ length: 40 }, (_, index) => 1 + (index % 7))
    await Promise.all(
      counts.map((count, index) => given.run({ op: 'audit', entries: someEntries(`w${index}`, count) })),
    )
    const after = await verifyAudit(given.storage)
    expect(after.faults).toEqual([])
    expect(after.checked - before.checked).toBe(counts.reduce((sum, count) => sum + count, 0))
  })

  it('audit rows are found by actor, request and namespace', async () => {
    const entries = [
      anEntry('f', { actor: 'bob', reason: '1' }),
      anEntry('f', { requestId: 'req-2', reason: '2' }),
      anEntry('f', { namespace: 'south', requestId: '', reason: '3' }),
      anEntry('f', { namespace: 'west', actor: 'bob', reason: '4' }),
    ]
    await given.run({ op: 'audit', entries })
    const find = async (query: object) =>
      (await given.storage.listAudit({ target: 'f', countMax: 10, ...query }))
        .map((row) => row.reason)
        .join('')
    expect(await find({ actor: 'bob' })).toBe('41')
    expect(await find({ requestId: 'req-2' })).toBe('2')
    expect(await find({ requestId: '' })).toBe('3')
    expect(await find({ namespaces: ['south', 'west'] })).toBe('43')
    expect(await find({ namespaces: ['_system'] })).toBe('21')
    expect(await find({ namespaces: ['south', '_system'], actor: 'ann' })).toBe('32')
    expect(await find({ namespaces: [] })).toBe('')
    expect(await find({ namespaces: ["south' or true --", '\u0000'] })).toBe('')
  })
})

describeDurableStores('a changed audit log', (given) => {
  const isSqlite = () => given.testStore.target.kind === 'sqlite'
  const sql = (write: (schema: string) => string) => executeSql(given.testStore.target, write)

  it('the database refuses to change and to delete audit rows', async () => {
    await given.run({ op: 'audit', entries: someEntries('r', 2) })
    await expect(sql((schema) => `update ${schema}audit set actor = 'bob'`)).rejects.toThrow(
      'audit rows cannot be',
    )
    await expect(sql((schema) => `delete from ${schema}audit`)).rejects.toThrow('audit rows cannot be')
    const stepBack = (schema: string) => `update ${schema}audit_chains set position = position - 1`
    await expect(sql(stepBack)).rejects.toThrow(/cannot be|forward only/)
    if (isSqlite()) {
      const replace = `insert or replace into audit select * from audit order by id limit 1`
      await expect(sql(() => replace)).rejects.toThrow('audit rows cannot be')
    } else {
      await expect(sql((schema) => `truncate ${schema}audit`)).rejects.toThrow('audit rows cannot be')
      await expect(sql((schema) => `truncate ${schema}audit_chains`)).rejects.toThrow('audit rows cannot be')
    }
    expect((await verifyAudit(given.storage)).faults).toEqual([])
  })

  it('a change by somebody who owns the database is found and named', async () => {
    const testStore = await createTestStore(given.name)
    try {
      const storage = await testStore.open()
      await storage.write([{ op: 'audit', entries: someEntries('t', 5) }])
      const ids: number[] = []
      for await (const row of readAuditLog(storage)) ids.push(row.id)
      await storage.close()
      const [first, , third] = ids
      await executeSql(testStore.target, (schema) =>
        [
          isSqlite()
            ? 'drop trigger audit_refuses_update; drop trigger audit_refuses_delete'
            : `alter table ${schema}audit disable trigger all`,
          `update ${schema}audit set reason = 'other' where id = ${first}`,
          `delete from ${schema}audit where id = ${third}`,
        ].join(';'),
      )
      const { faults } = await verifyAudit(await testStore.open())
      expect(faults.map(({ sentence }) => sentence)).toEqual([
        `row ${first} does not have its hash: it was changed`,
        `the row at position 3 of chain 1 is missing: it was removed before row ${ids[3]}`,
      ])
    } finally {
      await testStore.drop()
    }
  })
})

describeTheseStores(['PostgreSQL'], 'the audit chains of several servers', (given) => {
  it('two servers that write at once leave chains without a gap', async () => {
    const other = await given.testStore.open()
    const servers = [given.storage, other]
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        servers[index % 2]?.write([{ op: 'audit', entries: someEntries(`s${index}`, 3) }]),
      ),
    )
    const { faults, checked, heads } = await verifyAudit(given.storage)
    expect(faults).toEqual([])
    expect(checked).toBeGreaterThanOrEqual(180)
    expect(heads.reduce((sum, head) => sum + head.position, 0)).toBe(checked)
    await other.close()
  })

  it('rows of SQL statements are linked like those of a server', async () => {
    const insert = (schema: string) =>
      `insert into ${schema}audit (at, actor, action, target, reason, request_id, details)
         select n, 'database user “ä”', 'letters.archive', 'q', 'by hand', '', '{"n": 1}' from generate_series(1, 5) n`
    await executeSql(given.testStore.target, insert)
    await given.run({ op: 'audit', entries: someEntries('after', 2) })
    expect((await verifyAudit(given.storage)).faults).toEqual([])
    expect(await given.storage.listAudit({ target: 'q', countMax: 10 })).toHaveLength(5)
  })
})
