import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { aFailure, anOrigin, bytes, minute, noon } from '../../../../test/make.ts'
import type { LetterFilter, LetterOrder } from '../../contract/letters.ts'
import type { Bound, Database, Values } from '../connection/database.ts'
import { openFile } from '../connection/database-file.ts'
import { Writer } from '../write.ts'
import { findRanges } from './index-ranges.ts'
import { findEntries } from './scan-letters.ts'

let database: Database
const asked = new Set<string>()

beforeEach(() => {
  database = openFile(':memory:', 'full')
  const writer = new Writer(database, Math.random, () => noon)
  const items = Array.from({ length: 40 }, (_, number) => ({
    payload: bytes('{}'),
    key: bytes(`key-${number}`),
    origin: anOrigin({ name: `topic-${number % 2}` }),
    failure: aFailure({ errorClass: `Class${number % 4}` }),
    deadLetteredAt: noon + number * minute,
  }))
  const [outcome] = writer.write([
    [
      { op: 'create-queue', queue: { name: 'dead' }, now: noon },
      { op: 'import', queue: 'dead', partition: 0, items, now: noon },
    ],
  ])
  expect(outcome?.isOk).toBe(true)
  asked.clear()
  const { readArrays } = database
  database.readArrays = (sql: string, ...values: Bound[]): Values[] => {
    asked.add(sql)
    return readArrays.call(database, sql, ...values)
  }
})
afterEach(() => database.close())

function find(filter: LetterFilter, order: LetterOrder = 'deadLetteredAt', countMax = 5) {
  const after = { value: noon, id: '' }
  const ranges = findRanges(database, { filter, order, isDescending: false })
  return findEntries(database, ranges, { after, countMax, examinedMax: 100, msMax: 60_000 })
}

/** The query plans of the statements that read index entries. */
function plans(): string[] {
  return [...asked]
    .filter((sql) => sql.includes('rowid from items'))
    .flatMap((sql) => database.all(`explain query plan ${sql}`).map((row) => String(row.detail)))
}

describe('index entries of letters', () => {
  const parts: readonly (readonly [string, LetterFilter, LetterOrder, RegExp])[] = [
    [
      'a queue',
      { queues: ['dead'] },
      'deadLetteredAt',
      /COVERING INDEX items_died \(queue_id=\? AND letter_state=\? AND/,
    ],
    [
      'an error class',
      { errorClasses: ['Class1'] },
      'deadLetteredAt',
      /COVERING INDEX items_group \(group_id=\? AND/,
    ],
    ['redrives', { retryCount: { min: 0, max: 2 } }, 'deadLetteredAt', /COVERING INDEX items_group/],
    ['the last change', { states: ['waiting'] }, 'updatedAt', /COVERING INDEX items_updated/],
    ['a key', { key: bytes('key-7') }, 'deadLetteredAt', /INDEX items_key \(key_run=\? AND key=\? AND/],
    ['what is due', { dueBy: noon }, 'deadLetteredAt', /INDEX items_redrive/],
    ['letter ids', { letterIds: ['0'.repeat(27)] }, 'deadLetteredAt', /INDEX items_root \(root_id=\?\)/],
    [
      'a source id',
      { sourceIds: ['a'] },
      'deadLetteredAt',
      /INDEX items_source \(queue_id=\? AND source_id=\?\)/,
    ],
    ['a reference', { references: ['a'] }, 'deadLetteredAt', /INDEX items_reference \(reference=\? AND/],
    ['a trace', { traceIds: ['0'.repeat(32)] }, 'deadLetteredAt', /INDEX items_trace \(<expr>=\? AND/],
    ['a trace, by change', { traceIds: ['0'.repeat(32)] }, 'updatedAt', /INDEX items_trace \(<expr>=\?\)/],
  ]

  it.each(parts)('entries by %s are read in order from one range of an index', (_, filter, order, plan) => {
    find(filter, order)
    expect(plans().length).toBeGreaterThan(0)
    for (const detail of plans()) expect(detail).toMatch(plan)
  })

  it('entries of many ranges are merged into one order', () => {
    const { entries, next } = find({ errorClasses: ['Class0', 'Class1', 'Class2'] }, 'deadLetteredAt', 6)
    const sql = 'select died_at from items where rowid = ?'
    const died = entries.map(({ rowid }) => ((database.getArray(sql, rowid)?.[0] as number) - noon) / minute)
    expect(died).toEqual([0, 1, 2, 4, 5, 6])
    expect(next?.value).toBe(noon + 6 * minute)
  })

  it('a search checks its time after each letter, and makes progress', () => {
    const filter: LetterFilter = { json: { path: ['missing'], value: 'x' } }
    const ranges = findRanges(database, { filter, order: 'deadLetteredAt', isDescending: false })
    const bounds = { countMax: 5, examinedMax: 100, msMax: -1 }
    const first = findEntries(database, ranges, bounds)
    expect(first).toMatchObject({ entries: [], examinedCount: 1, next: { value: noon } })
    const after = first.next ?? { value: noon, id: '' }
    expect(findEntries(database, ranges, { ...bounds, after })).toMatchObject({
      examinedCount: 1,
      next: { value: noon + minute },
    })
  })

  it('a search by JSON path ends at 8 MiB of payloads', () => {
    const sql = 'update items set payload = zeroblob(?) where died_at < ?'
    database.run(sql, 3 * 2 ** 20, noon + 6 * minute)
    const filter: LetterFilter = { json: { path: ['missing'], value: 'x' } }
    const ranges = findRanges(database, { filter, order: 'deadLetteredAt', isDescending: false })
    const bounds = { countMax: 5, examinedMax: 100, msMax: Number.POSITIVE_INFINITY }
    expect(findEntries(database, ranges, bounds)).toMatchObject({
      examinedCount: 3,
      next: { value: noon + 2 * minute },
    })
  })

  it('the cursor is null exactly if there are no more letters', () => {
    expect(find({ errorClasses: ['Class3'] }, 'deadLetteredAt', 10).next).toBeNull()
    expect(find({ errorClasses: ['Class3'] }, 'deadLetteredAt', 9).next).not.toBeNull()
  })
})
