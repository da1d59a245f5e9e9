import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bytes, noon } from '../../../test/make.ts'
import type { Bound, Database } from './connection/database.ts'
import { openFile } from './connection/database-file.ts'
import { verifyCounts } from './counts/verify.ts'
import { type Write, Writer } from './write.ts'

let database: Database
let writer: Writer
let savepoints = 0

beforeEach(() => {
  database = openFile(':memory:', 'full')
  writer = new Writer(database, Math.random, () => noon)
  writer.write([[{ op: 'create-queue', queue: { name: 'work' }, now: noon }]])
  savepoints = 0
  const { run } = database
  database.run = (sql: string, ...values: Bound[]): number => {
    if (sql.startsWith('savepoint')) savepoints++
    return run.call(database, sql, ...values)
  }
})
afterEach(() => database.close())

const produce = (text: string): Write => [
  { op: 'produce', queue: 'work', partition: 0, items: [{ payload: bytes('{}'), kind: text }], now: noon },
]
const rejected: Write = [...produce('undone'), { op: 'create-queue', queue: { name: 'work' }, now: noon }]

function kinds(): unknown[] {
  return database.readArrays('select kind from items order by id').map(([kind]) => kind)
}

describe('a batch of writes that share a commit', () => {
  it('a batch without a rejected write is committed without savepoints', () => {
    const outcomes = writer.write([produce('a'), produce('b'), produce('c')])
    expect(outcomes.map(({ isOk }) => isOk)).toEqual([true, true, true])
    expect(kinds()).toEqual(['a', 'b', 'c'])
    expect(savepoints).toBe(0)
    expect(verifyCounts(database)).toEqual([])
  })

  it('a rejected write leaves no change, and the other writes of its batch are committed', () => {
    const outcomes = writer.write([produce('a'), rejected, produce('c')])
    expect(outcomes.map(({ isOk }) => isOk)).toEqual([true, false, true])
    expect(outcomes[1]).toMatchObject({ error: { code: 'QUEUE_EXISTS' } })
    expect(kinds()).toEqual(['a', 'c'])
    expect(verifyCounts(database)).toEqual([])
  })

  it('batches after a rejected write run once, with savepoints, until no write is rejected', () => {
    let begun = 0
    const { run } = database
    database.run = (sql: string, ...values: Bound[]): number => {
      if (sql.startsWith('begin')) begun++
      return run.call(database, sql, ...values)
    }
    for (let time = 0; time < 3; time++) writer.write([produce('a'), rejected])
    expect(begun).toBe(4)
    writer.write([produce('a'), produce('b')])
    savepoints = 0
    writer.write([produce('a'), produce('b')])
    expect(savepoints).toBe(0)
    expect(verifyCounts(database)).toEqual([])
  })
})
