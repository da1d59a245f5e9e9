/** Reads letters by their ids or UUIDs. */
import { findKsuidRange } from '../../../core/ids/ksuid.ts'
import type { LetterLocation, LetterNamespace, ListedLetter, PayloadSize } from '../../contract/letters.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import { itemColumnList, listedColumnList, readQueueId, toItem, toListedLetter } from '../items/rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import { isArchivedLetterSql, isLetterSql } from './letter-rows.ts'

const readSql = (columns: string) => `select ${columns} from items where ${isLetterSql} and root_id = ?`

export function getLetters(
  database: Database,
  letterIds: readonly string[],
  bytes: 'head' | 'all' = 'all',
): ListedLetter[] {
  const names = readQueueNames(database)
  const [columns, decode] = bytes === 'all' ? [itemColumnList, toItem] : [listedColumnList, toListedLetter]
  return letterIds.flatMap((letterId) => {
    const row = database.getArray(readSql(columns), letterId)
    return row === undefined ? [] : [decode(row, names.get(readQueueId(row)) ?? '')]
  })
}

const namespaceSql = (table: 'items' | 'archive', isLetter: string) => `select q.namespace from ${table}
  join queues q on q.id = queue_id where root_id = ? and ${isLetter}`
const liveNamespaceSql = namespaceSql('items', isLetterSql)
const archivedNamespaceSql = namespaceSql('archive', isArchivedLetterSql)

export function readLetterNamespaces(database: Database, letterIds: readonly string[]): LetterNamespace[] {
  return letterIds.flatMap((letterId) => {
    const row =
      database.getArray(liveNamespaceSql, letterId) ?? database.getArray(archivedNamespaceSql, letterId)
    return row === undefined ? [] : [{ letterId, namespace: readText(row, 0) }]
  })
}

const archivedSizeSql = `select length(payload) from archive where root_id = ? and ${isArchivedLetterSql}`

/** SQLite stores the length of a payload in the header of its row, and reads no further pages for it. */
export function readPayloadSizes(
  database: Database,
  letterIds: readonly string[],
  location: LetterLocation = 'live',
): PayloadSize[] {
  const sql = location === 'live' ? readSql('length(payload)') : archivedSizeSql
  return letterIds.flatMap((letterId) => {
    const row = database.getArray(sql, letterId)
    return row === undefined ? [] : [{ letterId, payloadBytes: readNumber(row, 0) }]
  })
}

const liveIdSql = `select root_id from items where ${isLetterSql} and root_id between ? and ? limit 1`
const archivedIdSql = `select root_id from archive
  where ${isArchivedLetterSql} and root_id between ? and ? limit 1`

/** A UUID is the first part of an id, so the ids that start with it form a range. */
export function findLettersByUuid(
  database: Database,
  uuids: readonly string[],
): Readonly<{ uuid: string; letterId: string }>[] {
  return uuids.flatMap((uuid) => {
    const range = findKsuidRange(uuid)
    if (range === undefined) return []
    const { first, last } = range
    const row = database.getArray(liveIdSql, first, last) ?? database.getArray(archivedIdSql, first, last)
    return row === undefined ? [] : [{ uuid, letterId: readText(row, 0) }]
  })
}
