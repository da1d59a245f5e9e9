/** Finds live letters by their ids. */
import type { ItemHead } from '../../../core/items/item.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import { headColumnList, itemColumns, omitColumns, readQueueId, toItemHead } from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'

export type FoundLetter = Readonly<{ queueRow: QueueRow; letter: ItemHead; rowid: number }>

/** Repeats the condition of the partial index first: SQLite uses the index only if the texts are equal. */
export const isLetterSql = '(source_id is not null or group_id is not null) and group_id is not null'
/** For rows of `archive`. */
export const isArchivedLetterSql = 'group_id is not null'

const columnsToDecide = omitColumns(['key', 'headers', 'payload', 'failure', 'history'])
const findSql = `select ${headColumnList}, rowid from items where ${isLetterSql} and root_id = ?`
const findToDecideSql = `select ${columnsToDecide}, rowid from items where ${isLetterSql} and root_id = ?`
const findArchivedSql = `select 1 from archive where root_id = ? and ${isArchivedLetterSql}`

export function findLetter(transaction: Transaction, letterId: string): FoundLetter | undefined {
  return find(transaction, findSql, letterId)
}

/** `findLetter` without the failures of the letter, for decisions that do not need them. */
export function findToDecide(transaction: Transaction, letterId: string): FoundLetter | undefined {
  return find(transaction, findToDecideSql, letterId)
}

function find({ database, queueCache }: Transaction, sql: string, letterId: string): FoundLetter | undefined {
  const row = database.getArray(sql, letterId)
  if (row === undefined) return undefined
  const queueRow = queueCache.getById(readQueueId(row))
  const letter = toItemHead(row, queueRow.queue.name)
  return { queueRow, letter, rowid: readNumber(row, itemColumns.length) }
}

/** Why a letter is not among the live ones. */
export function locateMissing({ database }: Transaction, letterId: string): 'missing' | 'archived' {
  return database.getArray(findArchivedSql, letterId) === undefined ? 'missing' : 'archived'
}
