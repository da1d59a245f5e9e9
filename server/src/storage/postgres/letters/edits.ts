/** Edited versions of letters. */
import type { EditLetter, LetterEdit } from '../../contract/letters.ts'
import { editEntries } from '../../shared/audit/audit-entries.ts'
import { stepBytesMax } from '../../shared/byte-budget.ts'
import { encodeHeaders } from '../../shared/items/item-row.ts'
import { decodeEdit } from '../../shared/letters/edit-row.ts'
import { createLetterNotFoundError } from '../../shared/letters/letter-not-found.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeUuids } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'
import { isKsuid } from './letter-rows.ts'

/** Locks the letter, so that two edits at the same time get two numbers. */
const lockLetter: Statement = {
  name: 'lock-letter',
  text: `select from redrive.items_sourced f
    where f.uuid = any ($1::uuid[]) and coalesce(f.root_id, f.id) = $2 and f.origin is not null for update`,
}

/** `$5` and `$7`: whether the edit has headers and a key. Other bytes are copied from the letter. */
const insertRow: Statement = {
  name: 'insert-edit',
  text: `insert into redrive.letter_edits (letter_id, number, queue_id, at, actor, headers, key, payload)
    select $2, coalesce((select max(e.number) from redrive.letter_edits e where e.letter_id = $2), 0) + 1, f.queue_id, $3, $4,
      case when $5::boolean then $6 else f.headers end, case when $7::boolean then $8::bytea else f.key end,
      coalesce($9::bytea, f.payload)
    from redrive.items_sourced f where f.uuid = any ($1::uuid[])
    returning number`,
}

export async function editLetter(transaction: Transaction, command: EditLetter): Promise<{ number: number }> {
  return { number: await insertEdit(transaction, command) }
}

/** Returns the number of the new edited version. */
export async function insertEdit(transaction: Transaction, edit: Omit<EditLetter, 'op'>): Promise<number> {
  const { letterId, headers, key, payload } = edit
  const { connection } = transaction
  const uuid = encodeUuids(isKsuid(letterId) ? [letterId] : [])
  const [found] = await connection.query(lockLetter, [uuid, letterId])
  if (found === undefined) throw createLetterNotFoundError(letterId)
  const [row = {}] = await connection.query(insertRow, [
    uuid,
    letterId,
    edit.now,
    edit.actor,
    headers !== undefined,
    headers === undefined ? null : encodeHeaders(headers),
    key !== undefined,
    toBuffer(key ?? null),
    toBuffer(payload ?? null),
  ])
  const number = readNumber(row, 'number')
  await insertAudit(connection, editEntries(edit.audit, letterId, number, edit))
  return number
}

/** `pg` sends a Buffer as its bytes, but another view as all of the memory behind it. */
function toBuffer(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** The payloads of the newest versions, up to `stepBytesMax`. */
const readEdits: Statement = {
  name: 'read-edits',
  text: `select number, at, actor, key, headers, octet_length(payload) as payload_bytes,
      case when sum(octet_length(payload)) over (order by number desc) - octet_length(payload) < ${stepBytesMax}
        then payload else ''::bytea end as payload
    from redrive.letter_edits where letter_id = $1 order by number`,
}

export async function listEdits(connections: Connections, letterId: string): Promise<LetterEdit[]> {
  if (!isKsuid(letterId)) return []
  return (await connections.read(readEdits, [letterId])).map(decodeEdit)
}
