import { describe, expect, it } from 'vitest'
import type { AuditHead, ChainedAuditRow } from '../../contract/audit.ts'
import { AuditChecker, firstHash, hashAuditRow, linkAuditRows } from './audit-chain.ts'
import { toStoredAudit } from './audit-rows.ts'

const entry = { at: 1, actor: 'ann', action: 'a', target: 't', reason: 'r', requestId: '', details: { n: 1 } }
const content = (id: number) => ({ ...toStoredAudit({ ...entry, target: `t${id}` }), id })

function aChain(chain: number, ids: readonly number[]): ChainedAuditRow[] {
  const stored = ids.map(content)
  const links = linkAuditRows({ chain, position: 0, hash: firstHash }, stored)
  return stored.map((row, index) => ({ id: row.id, stored: row, link: links[index] ?? null }))
}

function headOf(rows: readonly ChainedAuditRow[]): AuditHead {
  const last = rows.at(-1)
  if (last?.link == null) throw new Error('the chain is empty')
  return { ...last.link, lastId: last.id }
}

const first = aChain(1, [10, 11, 13, 16])
const second = aChain(2, [12, 14, 15])
const heads = [headOf(first), headOf(second)]
const whole = [...first, ...second].sort((a, b) => a.id - b.id)

function check(rows: readonly ChainedAuditRow[], from: readonly AuditHead[] = heads): readonly string[] {
  const checker = new AuditChecker(from)
  for (const row of [...rows].sort((a, b) => a.id - b.id)) checker.add(row)
  return checker.finish().map(({ kind, sentence }) => `${kind}: ${sentence}`)
}

const change = (id: number, changes: (row: ChainedAuditRow) => Partial<ChainedAuditRow>) =>
  whole.map((row) => (row.id === id ? { ...row, ...changes(row) } : row))
const withId = (row: ChainedAuditRow, id: number): ChainedAuditRow => ({
  ...row,
  id,
  stored: { ...row.stored, id },
})

describe('the check of the audit chains', () => {
  it('chains that interleave have no fault, also while newer rows are written', () => {
    expect(check(whole)).toEqual([])
    const later = linkAuditRows(headOf(first), [content(17)])
    expect(check([...whole, { id: 17, stored: content(17), link: later[0] ?? null }])).toEqual([])
    expect(check([...whole, ...aChain(3, [18, 19])])).toEqual([])
    expect(check([], [])).toEqual([])
  })

  it.each([
    'actor',
    'action',
    'target',
    'reason',
    'requestId',
    'namespace',
    'address',
    'keyPrefix',
    'details',
  ])('a changed %s is found', (field) => {
    const changed = change(13, (row) => ({ stored: { ...row.stored, [field]: 'other' } }))
    expect(check(changed)).toEqual([
      'changed: row 13 does not have its hash: it was changed, or the row before it in its chain, 11',
    ])
  })

  it('a changed row with a new hash is found at the row after it', () => {
    const stored = { ...content(11), reason: 'other' }
    const link = { chain: 1, position: 2 }
    const hash = hashAuditRow(first[0]?.link?.hash ?? '', link, stored)
    expect(check(change(11, () => ({ stored, link: { ...link, hash } })))).toEqual([
      'changed: row 13 does not have its hash: it was changed, or the row before it in its chain, 11',
    ])
  })

  it('removed rows are found, also the last ones of a chain and a whole chain', () => {
    expect(check(whole.filter(({ id }) => id !== 11))).toEqual([
      'removed: the row at position 2 of chain 1 is missing: it was removed before row 13',
    ])
    expect(check(whole.filter(({ id }) => id !== 15))).toEqual([
      'removed: the rows at position 3 of chain 2 are missing; the last of them was row 15',
    ])
    expect(check(first)).toEqual([
      'removed: the rows at positions 1 to 3 of chain 2 are missing; the last of them was row 15',
    ])
  })

  it('inserted rows are found: without a link, with the link of another row and in an unknown chain', () => {
    const row = whole[2] as ChainedAuditRow
    expect(check([...whole, { ...withId(row, 9), link: null }])).toEqual([
      'inserted: row 9 is in no chain: it was inserted',
    ])
    expect(check([...whole, withId(first[0] as ChainedAuditRow, 14.5)])).toEqual([
      'inserted: row 14.5 has position 1 of chain 1, which another row has: it was inserted',
    ])
    expect(check([...whole, ...aChain(9, [9])])).toEqual([
      'inserted: row 9 is in chain 9, which does not exist: it was inserted',
    ])
    const behind = linkAuditRows(headOf(first), [content(9)])
    expect(check([...whole, { id: 9, stored: content(9), link: behind[0] ?? null }])).toEqual([
      'inserted: row 9 is behind the end of chain 1',
    ])
  })

  it('moved rows are found: the ids of two rows were exchanged', () => {
    const [, b, c] = first as [ChainedAuditRow, ChainedAuditRow, ChainedAuditRow]
    const others = whole.filter((row) => row !== b && row !== c)
    expect(check([...others, withId(b, 13), withId(c, 11)])).toEqual([
      'moved: row 13 has position 2 of chain 1, but its id is behind later rows: it was moved',
    ])
  })

  it('a head that was changed is found', () => {
    const [head, other] = heads as [AuditHead, AuditHead]
    expect(check(whole, [{ ...head, hash: firstHash }, other])).toEqual([
      'unfinished: the head of chain 1 does not have the hash of its last row',
    ])
  })

  it('rows from before the chains are covered by the head of chain 0', () => {
    const old = [1, 2, 3].map((id) => ({ id, stored: content(id), link: null }))
    const links = linkAuditRows(
      { chain: 0, position: 0, hash: firstHash },
      old.map(({ stored }) => stored),
    )
    const head = { ...(links[2] as NonNullable<ChainedAuditRow['link']>), lastId: 3 }
    expect(check([...old, ...whole], [head, ...heads])).toEqual([])
    const fault = (count: number) =>
      `changed-before-chains: the rows up to 3, from before the chains, were changed: ${count} of 3 rows are there`
    expect(check([...old.slice(1), ...whole], [head, ...heads])).toEqual([fault(2)])
    const changed = { ...content(2), actor: 'bob' }
    expect(check([...old.map((row) => (row.id === 2 ? { ...row, stored: changed } : row))], [head])).toEqual([
      fault(3),
    ])
  })
})
