/** Reads archived letters by their ids. The search (storage/search) finds them by a filter. */
import type { ArchivedItem } from '../../contract/archive.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database, Values } from '../connection/database.ts'
import { itemColumnList, itemColumns, readQueueId, toItem } from '../items/rows.ts'
import { isArchivedLetterSql } from '../letters/letter-rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'

/** The item, then when it was archived, then its rowid. */
export const archivedLetterSql = `select ${itemColumnList}, archived_at, rowid from archive
  where root_id = ? and ${isArchivedLetterSql}`

/** From a row of `archivedLetterSql`. */
export function readArchiveRowid(row: Values): number {
  return readNumber(row, itemColumns.length + 1)
}

export function getArchivedLetters(database: Database, letterIds: readonly string[]): ArchivedItem[] {
  const names = readQueueNames(database)
  return letterIds.flatMap((letterId) => {
    const row = database.getArray(archivedLetterSql, letterId)
    if (row === undefined) return []
    const item = toItem(row, names.get(readQueueId(row)) ?? '')
    return [{ item, archivedAt: readNumber(row, itemColumns.length) }]
  })
}
