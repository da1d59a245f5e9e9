/** Reads archived letters by their ids, or newest first. search-archive.ts finds them by a filter. */
import type { ArchivedItem } from '../../contract/archive.ts'
import type { ArchivedLettersQuery, ListedArchived } from '../../contract/letters.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import type { Database, Values } from '../connection/database.ts'
import {
  itemColumnList,
  itemColumns,
  listedColumnList,
  readQueueId,
  toItem,
  toListedLetter,
} from '../items/rows.ts'
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
    const row = database.array(archivedLetterSql, letterId)
    if (row === undefined) return []
    const item = toItem(row, names.get(readQueueId(row)) ?? '')
    return [{ item, archivedAt: readNumber(row, itemColumns.length) }]
  })
}

type Entry = Readonly<{ archivedAt: number; id: string; rowid: number }>

const listedSql = `select ${listedColumnList} from archive where rowid = ?`

export function listArchivedLetters(database: Database, query: ArchivedLettersQuery): ListedArchived[] {
  const { queues, after, countMax } = query
  const names = readLetterQueues(database, queues)
  const beyond = after === undefined ? '' : 'and (archived_at, id) < (?, ?)'
  const pageSql = `select archived_at, id, rowid from archive
    where queue_id = ? and ${isArchivedLetterSql} ${beyond} order by archived_at desc, id desc limit +?`
  const cursor = after === undefined ? [] : [after.archivedAt, after.id]
  return [...names.keys()]
    .flatMap((queueId) => database.arrays(pageSql, queueId, ...cursor, countMax).map(decodeEntry))
    .sort((a, b) => b.archivedAt - a.archivedAt || (a.id > b.id ? -1 : 1))
    .slice(0, countMax)
    .flatMap(({ archivedAt, rowid }) => {
      const row = database.array(listedSql, rowid)
      if (row === undefined) return []
      return [{ item: toListedLetter(row, names.get(readQueueId(row)) ?? ''), archivedAt }]
    })
}

function decodeEntry(row: Values): Entry {
  return { archivedAt: readNumber(row, 0), id: readText(row, 1), rowid: readNumber(row, 2) }
}

/** The named queues that have or had letters, by id. Other queues may have archived items, but no letters. */
export function readLetterQueues(
  database: Database,
  queues: readonly string[] | undefined,
): ReadonlyMap<number, string> {
  const sql = 'select id, name from queues q where exists (select 1 from groups where queue_id = q.id)'
  const rows = database.arrays(sql).map((row) => [readNumber(row, 0), readText(row, 1)] as const)
  return new Map(rows.filter(([, name]) => queues === undefined || queues.includes(name)))
}
