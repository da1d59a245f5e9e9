/** Reads letters by their ids or UUIDs. */
import type { LetterLocation, LetterNamespace, ListedLetter, PayloadSize } from '../../contract/letters.ts'
import { readNumber, readText, readTextOrNull } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { listedColumns, readColumns, toItem, toListedLetter } from '../items/rows.ts'
import { isKsuid } from './letter-rows.ts'

export const wholeColumns = readColumns.map((column) => `f.${column}`).join(', ')

/** Reads letters with the given UUIDs (`$1`) and ids (`$2`) in their order. */
export function createReadById(name: string, table: 'items_sourced' | 'archive', columns: string): Statement {
  return {
    name,
    text: `select t.*, q.name as queue_name
      from unnest($1::uuid[], $2::text[]) with ordinality as w(uuid, letter_id, n)
        cross join lateral (
          select ${columns}
          from redrive.${table} f
          where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0
        ) t
        join redrive.queues q on q.id = t.queue_id
      order by w.n`,
  }
}
export const readLetters = createReadById('read-letters', 'items_sourced', wholeColumns)
const readHeads = createReadById('read-letter-heads', 'items_sourced', listedColumns)

export async function getLetters(
  connections: Connections,
  letterIds: readonly string[],
  bytes: 'head' | 'all' = 'all',
): Promise<ListedLetter[]> {
  const ids = letterIds.filter(isKsuid)
  if (ids.length === 0) return []
  const [statement, decode] = bytes === 'all' ? [readLetters, toItem] : [readHeads, toListedLetter]
  const rows = await connections.read(statement, [encodeUuids(ids), encodeTexts(ids)])
  return rows.map((row) => decode(row, readText(row, 'queue_name')))
}

/** PostgreSQL stores the length of a large payload in its row, and does not read the payload for it. */
function createReadSizes(name: string, table: 'items_sourced' | 'archive'): Statement {
  return {
    name,
    text: `select w.letter_id, t.bytes from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
      cross join lateral (
        select octet_length(f.payload) as bytes from redrive.${table} f
        where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0) t`,
  }
}
const readSizes: Readonly<Record<LetterLocation, Statement>> = {
  live: createReadSizes('read-payload-sizes', 'items_sourced'),
  archive: createReadSizes('read-archived-payload-sizes', 'archive'),
}

export async function readPayloadSizes(
  connections: Connections,
  letterIds: readonly string[],
  location: LetterLocation = 'live',
): Promise<PayloadSize[]> {
  const ids = letterIds.filter(isKsuid)
  if (ids.length === 0) return []
  const rows = await connections.read(readSizes[location], [encodeUuids(ids), encodeTexts(ids)])
  return rows.map((row) => ({
    letterId: readText(row, 'letter_id'),
    payloadBytes: readNumber(row, 'bytes'),
  }))
}

export const findByUuid: Statement = {
  name: 'find-letters-by-uuid',
  text: `select w.uuid, coalesce(l.letter_id, a.letter_id) as letter_id from unnest($1::text[]) as w(uuid)
    left join lateral (
      select coalesce(f.root_id, f.id) as letter_id from redrive.items_sourced f
      where f.uuid = w.uuid::uuid and f.origin is not null offset 0) l on true
    left join lateral (
      select coalesce(f.root_id, f.id) as letter_id from redrive.archive f
      where f.uuid = w.uuid::uuid and f.origin is not null and f.uuid is not null limit 1) a on true`,
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export async function findLettersByUuid(
  connections: Connections,
  uuidTexts: readonly string[],
): Promise<Readonly<{ uuid: string; letterId: string }>[]> {
  const valid = uuidTexts.filter((uuid) => uuidForm.test(uuid))
  if (valid.length === 0) return []
  const rows = await connections.read(findByUuid, [encodeTexts(valid)])
  return rows.flatMap((row) => {
    const letterId = readTextOrNull(row, 'letter_id')
    return letterId === null ? [] : [{ uuid: readText(row, 'uuid'), letterId }]
  })
}

/** The namespaces of the letters with the UUIDs `$1` and the ids `$2`. */
export const letterNamespacesSql = ['items_sourced', 'archive']
  .map(
    (table) => `select w.letter_id, q.namespace from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
        cross join lateral (
          select f.queue_id from redrive.${table} f
          where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0) t
        join redrive.queues q on q.id = t.queue_id`,
  )
  .join(' union all ')
const readNamespaces: Statement = { name: 'read-letter-namespaces', text: letterNamespacesSql }

export async function readLetterNamespaces(
  connections: Connections,
  letterIds: readonly string[],
): Promise<LetterNamespace[]> {
  const ids = [...new Set(letterIds)].filter(isKsuid)
  if (ids.length === 0) return []
  const rows = await connections.read(readNamespaces, [encodeUuids(ids), encodeTexts(ids)])
  return rows.map((row) => ({ letterId: readText(row, 'letter_id'), namespace: readText(row, 'namespace') }))
}
