/**
 * Finds archived letters by a filter. Reads the only index of the archive, by queue and time, and compares
 * letter by letter, up to `examinedMax` letters and for a limited time.
 */
import {
  type ArchivePage,
  type ArchiveQuery,
  type ListedArchived,
  pageBytesMax,
} from '../../contract/letters.ts'
import { matchesArchived } from '../../shared/match-letter.ts'
import type { Database } from '../connection/database.ts'
import { columnsWithout, listedColumnList, readQueueId, toItem, toListedLetter } from '../items/rows.ts'
import { hasGroupFilter } from '../letters/index-ranges.ts'
import { readGroupIds } from '../letters/list-letters.ts'
import { type IndexEntry, MergedRanges, readRange } from '../letters/merge-ranges.ts'
import { readLetterQueues } from './read-archive.ts'

/** Other reads wait for the same thread, so a search returns after this time with what it found. */
const searchMsMax = 250

const listedSql = `select ${listedColumnList} from archive where rowid = ?`

export function findArchivedLetters(
  database: Database,
  query: ArchiveQuery,
  msMax = searchMsMax,
): ArchivePage {
  const { after, countMax, examinedMax } = query
  const names = readLetterQueues(database, query.filter.queues)
  const merged = mergeQueues(database, query, [...names.keys()])
  const matches = createMatcher(database, query, names)
  const letters: ListedArchived[] = []
  const deadline = performance.now() + msMax
  let examinedCount = 0
  let bytes = 0
  let last = after
  while (letters.length < countMax && examinedCount < examinedMax && bytes < pageBytesMax) {
    const entry = merged.take()
    if (entry === undefined) break
    last = { archivedAt: entry.value, id: entry.id }
    examinedCount++
    const row = matches(entry) ? database.array(listedSql, entry.rowid) : undefined
    if (row !== undefined) {
      const item = toListedLetter(row, names.get(readQueueId(row)) ?? '')
      letters.push({ item, archivedAt: entry.value })
      // SQLite reads the whole payload to return its beginning.
      bytes += item.payloadBytes ?? item.payload.length
    }
    if (performance.now() > deadline) break
  }
  return { letters, examinedCount, next: merged.isEmpty ? null : (last ?? null) }
}

function mergeQueues(
  database: Database,
  { filter, after }: ArchiveQuery,
  queueIds: readonly number[],
): MergedRanges {
  const order = {
    table: 'archive',
    column: 'archived_at',
    times: filter.archived ?? {},
    isDescending: true,
    ...(after !== undefined && { after: { value: after.archivedAt, id: after.id } }),
  } as const
  const ranges = queueIds.map((queueId) => readRange(database, order, 'queue_id = ?', [queueId]))
  return new MergedRanges(ranges, true)
}

function createMatcher(
  database: Database,
  { filter }: ArchiveQuery,
  names: ReadonlyMap<number, string>,
): (entry: IndexEntry) => boolean {
  const groupIds = hasGroupFilter(filter) ? readGroupIds(database, filter) : undefined
  const needsFailure = filter.text !== undefined || filter.errorClasses !== undefined
  const omitted = ['origin', 'history', 'letter', 'headers', 'payload']
  if (!needsFailure) omitted.push('failure')
  if (filter.key === undefined) omitted.push('key')
  const sql = `select ${columnsWithout(omitted)} from archive where rowid = ?`
  return ({ rowid, value: archivedAt }) => {
    const row = database.array(sql, rowid)
    if (row === undefined) return false
    const item = toItem(row, names.get(readQueueId(row)) ?? '')
    // Items that are not letters have no group.
    if (item.groupId === null || groupIds?.has(item.groupId) === false) return false
    return matchesArchived({ item, archivedAt }, filter)
  }
}
