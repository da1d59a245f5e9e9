/**
 * The ids that a letter is known by besides its letter id and its source id
 * (core/dead-letters/letter-ids.ts).
 */
import type { LetterIdRecord } from '../../../core/dead-letters/letter-ids.ts'
import { readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import { isArchivedLetterSql } from './letter-rows.ts'

const insertSql = 'insert into letter_ids (letter_id, id) values (?, ?) on conflict do nothing'

export function recordLetterIds(database: Database, records: readonly LetterIdRecord[]): void {
  for (const { letterId, id } of records) database.run(insertSql, letterId, id)
}

export function forgetLetterIds(database: Database, letterId: string): void {
  database.run('delete from letter_ids where letter_id = ?', letterId)
}

const findSqls = [
  'select letter_id from letter_ids where id = ?',
  // `cross join` and `+` keep SQLite from starting with all letters.
  `select i.root_id from queues q cross join items i
   where i.queue_id = q.id and i.source_id = ? and i.source_id is not null and +i.group_id is not null`,
  `select root_id from archive where source_id = ? and source_id is not null and ${isArchivedLetterSql}`,
]

export function findLetterIds(database: Database, ids: readonly string[]): LetterIdRecord[] {
  return ids.flatMap((id) => {
    const found = findSqls.flatMap((sql) => database.readArrays(sql, id).map((row) => readText(row, 0)))
    return [...new Set(found)].map((letterId) => ({ letterId, id }))
  })
}
