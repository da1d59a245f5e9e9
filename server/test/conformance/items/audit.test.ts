import { expect, it } from 'vitest'
import type { AuditEntry } from '../../../src/storage/contract/audit.ts'
import { newItems, noon } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('the audit trail', (given) => {
  let runs = 0
  /** Audit rows are never deleted, so each test looks for its own target. */
  const anEntry = (target: string, changes: Partial<AuditEntry> = {}): AuditEntry => ({
    at: noon,
    actor: 'ann',
    action: 'queue.clear',
    target,
    reason: 'test data',
    requestId: 'req-1',
    details: {},
    ...changes,
  })
  const aTarget = () => `target-${++runs}`

  it('audit rows are listed newest first', async () => {
    const target = aTarget()
    const details = { count: 3, deep: { list: [1, 'two', null, true], empty: {} }, text: '“ä” 注文 🧾 \\ "' }
    const entries = [
      anEntry(target, { details, at: noon + 1 }),
      anEntry(target, { actor: '', reason: '', requestId: '', at: noon - 1 }),
      anEntry(target, { actor: 'bob\n', at: 0 }),
    ]
    await given.run({ op: 'audit', entries })
    const rows = await given.storage.listAudit({ target, countMax: 10 })
    expect(rows.map(({ id, ...entry }) => entry)).toEqual(entries.toReversed())
    const ids = rows.map((row) => row.id)
    expect(ids).toEqual(ids.toSorted((a, b) => b - a))
    expect(new Set(ids).size).toBe(3)
  })

  it('an audit row is committed with its change or not at all', async () => {
    const target = aTarget()
    const queue = await given.queue()
    await given.storage.write([
      { op: 'produce', queue, partition: 0, items: newItems(1), now: noon },
      { op: 'audit', entries: [anEntry(target)] },
    ])
    const refused = given.storage.write([
      { op: 'audit', entries: [anEntry(target)] },
      { op: 'delete-queue', name: 'nowhere' },
    ])
    await expect(refused).rejects.toThrow()
    expect(await given.storage.listAudit({ target, countMax: 10 })).toHaveLength(1)
  })

  it('audit rows are listed page by page', async () => {
    const target = aTarget()
    const entries = Array.from({ length: 7 }, (_, index) => anEntry(target, { reason: `${index}` }))
    await given.run({ op: 'audit', entries })
    const seen: string[] = []
    for (let beforeId: number | undefined; ; ) {
      const query = { target, countMax: 3, ...(beforeId !== undefined && { beforeId }) }
      const page = await given.storage.listAudit(query)
      seen.push(...page.map((row) => row.reason))
      if (page.length < 3) break
      beforeId = page.at(-1)?.id
    }
    expect(seen.join('')).toBe('6543210')
  })

  it('audit rows are found by exact target and action', async () => {
    const target = aTarget()
    await given.run({
      op: 'audit',
      entries: [
        anEntry(target, { action: `${target}.a`, reason: '1' }),
        anEntry(target, { action: `${target}.b`, reason: '2' }),
        anEntry(`${target}/sub`, { action: `${target}.a`, reason: '3' }),
      ],
    })
    const reasons = async (query: { target?: string; action?: string }) =>
      (await given.storage.listAudit({ ...query, countMax: 10 })).map((row) => row.reason).join('')
    expect(await reasons({ target })).toBe('21')
    expect(await reasons({ action: `${target}.a` })).toBe('31')
    expect(await reasons({ target, action: `${target}.a` })).toBe('1')
    expect(await reasons({ target: target.toUpperCase() })).toBe('')
    expect(await reasons({ target: '%' })).toBe('')
  })

  it('audit rows are found by time, newest time first, page by page', async () => {
    const target = aTarget()
    const times = [3, 1, 2, 2, 5]
    const entries = times.map((at, index) => anEntry(target, { at: noon + at, reason: `${index}` }))
    await given.run({ op: 'audit', entries })
    const reasons = async (limits: Readonly<{ after?: number; before?: number }>, countMax = 10) => {
      const found: string[] = []
      let position: { at: number; id: number } | undefined
      for (;;) {
        const paged = { ...limits, ...(position !== undefined && { position }) }
        const rows = await given.storage.listAudit({ target, times: paged, countMax })
        found.push(...rows.map(({ reason }) => reason))
        const last = rows.at(-1)
        if (last === undefined || rows.length < countMax) return found.join('')
        position = { at: last.at, id: last.id }
      }
    }
    expect(await reasons({})).toBe('40321')
    expect(await reasons({ after: noon + 2 })).toBe('4032')
    expect(await reasons({ before: noon + 3 })).toBe('321')
    expect(await reasons({ after: noon + 2, before: noon + 3 })).toBe('32')
    expect(await reasons({ after: noon + 2, before: noon + 5 }, 1)).toBe('032')
    expect(await reasons({ after: noon + 6 })).toBe('')
  })
})
