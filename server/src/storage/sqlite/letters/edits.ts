/** Edited versions of letters. */
import { KnownError } from '../../../errors.ts'
import type { EditLetter, LetterEdit } from '../../contract/letters.ts'
import { editEntries } from '../../shared/audit-entries.ts'
import { headersFromText, headersToText } from '../../shared/item-row.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import { itemColumnList, toItem } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'
import { isLetterSql } from './redrive-ends.ts'

const letterSql = `select ${itemColumnList} from items where ${isLetterSql} and root_id = ?`

export function editLetter(transaction: Transaction, command: EditLetter): { number: number } {
  return { number: keepEdit(transaction, command) }
}

/** Gives its number. */
export function keepEdit({ database }: Transaction, edit: Omit<EditLetter, 'op'>): number {
  const { letterId, payload, key, headers, actor, now } = edit
  const row = database.array(letterSql, letterId)
  if (row === undefined) throw new KnownError('LETTER_NOT_FOUND', `there is no letter ${letterId}`)
  const letter = toItem(row, '')
  const last = database.array('select max(number) from letter_edits where letter_id = ?', letterId)
  const number = ((last?.[0] as number | null | undefined) ?? 0) + 1
  database.run(
    `insert into letter_edits (letter_id, number, queue_id, at, actor, key, headers, payload)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
    letterId,
    number,
    row[0] as number,
    now,
    actor,
    key === undefined ? letter.key : key,
    headersToText(headers ?? letter.headers),
    payload ?? letter.payload,
  )
  insertAudit(database, editEntries(edit.trace, letterId, number, edit))
  return number
}

export function listEdits(database: Database, letterId: string): LetterEdit[] {
  const rows = database.all('select * from letter_edits where letter_id = ? order by number', letterId)
  return rows.map((row) => ({
    number: row.number as number,
    at: row.at as number,
    actor: row.actor as string,
    payload: row.payload as Uint8Array,
    key: row.key as Uint8Array | null,
    headers: headersFromText(row.headers as string | null),
  }))
}
