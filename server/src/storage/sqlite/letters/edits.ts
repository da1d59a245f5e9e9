/** Edited versions of letters. */
import type { EditLetter, LetterEdit } from '../../contract/letters.ts'
import { editEntries } from '../../shared/audit/audit-entries.ts'
import { stepBytesMax } from '../../shared/byte-budget.ts'
import { encodeHeaders } from '../../shared/items/item-row.ts'
import { decodeEdit } from '../../shared/letters/edit-row.ts'
import { createLetterNotFoundError } from '../../shared/letters/letter-not-found.ts'
import { readNumberOrNull } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import { itemColumnList, readQueueId, toItem } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'
import { isLetterSql } from './letter-rows.ts'

const letterSql = `select ${itemColumnList} from items where ${isLetterSql} and root_id = ?`
const insertSql = `insert into letter_edits (letter_id, number, queue_id, at, actor, key, headers, payload)
  values (?, ?, ?, ?, ?, ?, ?, ?)`

export function editLetter(transaction: Transaction, command: EditLetter): { number: number } {
  return { number: insertEdit(transaction, command) }
}

/** Returns the number of the new edited version. */
export function insertEdit({ database }: Transaction, edit: Omit<EditLetter, 'op'>): number {
  const { letterId, payload, key, headers, actor, now } = edit
  const row = database.getArray(letterSql, letterId)
  if (row === undefined) throw createLetterNotFoundError(letterId)
  const letter = toItem(row, '')
  const last = database.getArray('select max(number) from letter_edits where letter_id = ?', letterId)
  const number = (readNumberOrNull(last ?? [null], 0) ?? 0) + 1
  database.run(
    insertSql,
    letterId,
    number,
    readQueueId(row),
    now,
    actor,
    key === undefined ? letter.key : key,
    encodeHeaders(headers ?? letter.headers),
    payload ?? letter.payload,
  )
  insertAudit(database, editEntries(edit.audit, letterId, number, edit))
  return number
}

/** The payloads of the newest versions, up to `stepBytesMax`. */
const listSql = `select number, at, actor, key, headers, length(payload) as payload_bytes,
    iif(sum(length(payload)) over (order by number desc) - length(payload) < ${stepBytesMax}, payload, x'') as payload
  from letter_edits where letter_id = ? order by number`

export function listEdits(database: Database, letterId: string): LetterEdit[] {
  return database.all(listSql, letterId).map(decodeEdit)
}
