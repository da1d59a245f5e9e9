/**
 * The ids that a letter is known by besides its letter id and its source id
 * (core/dead-letters/letter-ids.ts).
 */
import type { LetterIdRecord } from '../../../core/dead-letters/letter-ids.ts'
import { isStorableText } from '../../../core/text/storable-text.ts'
import { readText } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeTexts } from '../connection/encode-arrays.ts'

const insertIds: Statement = {
  name: 'insert-letter-ids',
  text: `insert into redrive.letter_ids (letter_id, id)
    select * from unnest($1::text[], $2::text[]) on conflict do nothing`,
}

export async function recordLetterIds(
  connection: Pick<Connection, 'query'>,
  records: readonly LetterIdRecord[],
): Promise<void> {
  if (records.length === 0) return
  await connection.query(insertIds, [
    encodeTexts(records.map(({ letterId }) => letterId)),
    encodeTexts(records.map(({ id }) => id)),
  ])
}

export const findIds: Statement = {
  name: 'find-letter-ids',
  text: `select w.id, l.letter_id from unnest($1::text[]) as w(id) cross join lateral (
      select a.letter_id from redrive.letter_ids a where a.id = w.id
      union select coalesce(f.root_id, f.id) from redrive.items_sourced f
        where f.source_id = w.id and f.source_id is not null and f.group_id is not null
      union select coalesce(f.root_id, f.id) from redrive.archive f
        where f.source_id = w.id and f.source_id is not null and f.group_id is not null
    ) l`,
}

export async function findLetterIds(
  connections: Connections,
  ids: readonly string[],
): Promise<LetterIdRecord[]> {
  const known = ids.filter(isStorableText)
  if (known.length === 0) return []
  const rows = await connections.read(findIds, [encodeTexts(known)])
  return rows.map((row) => ({ id: readText(row, 'id'), letterId: readText(row, 'letter_id') }))
}
