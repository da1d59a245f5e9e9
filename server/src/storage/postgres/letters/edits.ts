import type { Header } from '../../../core/item.ts'
import { KnownError } from '../../../errors.ts'
import type { EditLetter, LetterEdit } from '../../contract/letters.ts'
import { editEntries } from '../../shared/audit-entries.ts'
import { headersFromText, headersToText } from '../../shared/item-row.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { uuids } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'
import { isId } from './letter-rows.ts'

/** The row of the letter is locked meanwhile: so two who edit at once get two numbers. */
const lockLetter: Statement = {
  name: 'lock-letter',
  text: `select from redrive.items_sourced f
    where f.uuid = any ($1::uuid[]) and coalesce(f.root_id, f.id) = $2 and f.origin is not null for update`,
}

const addEdit: Statement = {
  name: 'keep-edit',
  text: `insert into redrive.letter_edits (letter_id, number, queue_id, at, actor, headers, key, payload)
    select $2, coalesce((select max(e.number) from redrive.letter_edits e where e.letter_id = $2), 0) + 1, f.queue_id, $3, $4,
      case when $5::boolean then $6 else f.headers end, case when $7::boolean then $8::bytea else f.key end,
      coalesce($9::bytea, f.payload)
    from redrive.items_sourced f where f.uuid = any ($1::uuid[])
    returning number`,
}

export async function editLetter(transaction: Transaction, command: EditLetter): Promise<{ number: number }> {
  return { number: await keepEdit(transaction, command) }
}

/** Gives its number. */
export async function keepEdit(transaction: Transaction, edit: Omit<EditLetter, 'op'>): Promise<number> {
  const { letterId, headers, key, payload } = edit
  const { connection } = transaction
  const uuid = uuids(isId(letterId) ? [letterId] : [])
  const [found] = await connection.query(lockLetter, [uuid, letterId])
  if (found === undefined) {
    throw new KnownError('LETTER_NOT_FOUND', `there is no letter ${letterId} outside the archive`)
  }
  const [row] = await connection.query(addEdit, [
    uuid,
    letterId,
    edit.now,
    edit.actor,
    headers !== undefined,
    headers === undefined ? null : headersToText(headers),
    key !== undefined,
    bufferOf(key ?? null),
    bufferOf(payload ?? null),
  ])
  const number = row?.number as number
  await insertAudit(connection, editEntries(edit.trace, letterId, number, edit))
  return number
}

/** `pg` sends a Buffer as bytes; of another view it would send the whole memory behind it. */
function bufferOf(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

const readEdits: Statement = {
  name: 'read-edits',
  text: 'select * from redrive.letter_edits where letter_id = $1 order by number',
}

export async function listEdits(connections: Connections, letterId: string): Promise<LetterEdit[]> {
  if (!isId(letterId)) return []
  const rows = await connections.read(readEdits, [letterId])
  return rows.map((row) => ({
    number: row.number as number,
    at: row.at as number,
    actor: row.actor as string,
    payload: row.payload as Uint8Array,
    key: row.key as Uint8Array | null,
    headers: headersFromText(row.headers as string | null) as readonly Header[],
  }))
}
