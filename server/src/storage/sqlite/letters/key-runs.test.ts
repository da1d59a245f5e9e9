import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { aFailure, anOrigin, bytes, minute, noon } from '../../../../test/make.ts'
import type { LetterOrder } from '../../contract/letters.ts'
import type { Database } from '../connection/database.ts'
import { openFile } from '../connection/database-file.ts'
import { Writer } from '../write.ts'
import { findRanges } from './index-ranges.ts'
import { KeyRuns, listRuns } from './key-runs.ts'
import { scanLetters } from './scan-letters.ts'

let database: Database

beforeEach(() => {
  database = openFile(':memory:', 'full')
  const writer = new Writer(database, Math.random, () => noon)
  const items = Array.from({ length: 12 }, (_, number) => ({
    payload: bytes(`${number}`),
    key: number === 11 ? null : bytes(number % 2 === 0 ? 'even' : 'odd'),
    origin: anOrigin(),
    failure: aFailure(),
    // Letters do not die in the order in which they arrive.
    deadLetteredAt: noon + ((number * 5) % 12) * minute,
  }))
  const [outcome] = writer.write([
    [
      { op: 'create-queue', queue: { name: 'dead' }, now: noon },
      { op: 'import', queue: 'dead', partition: 0, items, now: noon },
    ],
  ])
  expect(outcome?.isOk).toBe(true)
})
afterEach(() => database.close())

describe('runs of keys', () => {
  it('a new run starts when the last run in the file is full', () => {
    // The file has eleven letters with a key.
    const runs = new KeyRuns(database, 13)
    expect(Array.from({ length: 4 }, () => runs.allocate())).toEqual([1, 1, 2, 2])
    database.run('update items set key_run = 7 where key = ?', bytes('odd'))
    expect(new KeyRuns(database, 6).allocate()).toBe(7)
    expect(new KeyRuns(database, 5).allocate()).toBe(8)
  })

  it('only runs that have letters are listed', () => {
    expect(listRuns(database)).toEqual([1])
    database.run(
      'update items set key_run = 9 where key = ? and died_at > ?',
      bytes('odd'),
      noon + 6 * minute,
    )
    expect(listRuns(database)).toEqual([1, 9])
  })

  it.each<LetterOrder>(['deadLetteredAt', 'updatedAt'])(
    'a search by key finds the letters of all runs, ordered by %s',
    (order) => {
      database.run(`update items set key_run = 1 + rowid % 3, updated_at = died_at where key is not null`)
      const find = (countMax: number) =>
        scanLetters(
          database,
          findRanges(database, { filter: { key: bytes('even') }, order, isDescending: true }),
          { countMax, examinedMax: 100, msMax: 60_000, bytes: 'all', round: 0 },
        )
      const minutes = find(10).found.map(({ item }) => ((item.deadLetteredAt ?? 0) - noon) / minute)
      expect(minutes).toEqual([10, 8, 6, 4, 2, 0])
      expect(find(4).found).toHaveLength(4)
      expect(find(4).next).not.toBeNull()
    },
  )
})
