/**
 * Archived letters that match. Its one index, by queue and time, is read in order and merged; what is asked for is asked of
 * one letter after the other, for no more than `lookMax` of them, and no longer than a moment.
 */

import {
  type ArchivePage,
  type ArchiveQuery,
  type ListedArchived,
  pageBytesMax,
} from '../../contract/letters.ts'
import { matchesArchived } from '../../shared/match-letter.ts'
import type { Database, Values } from '../connection/database.ts'
import { columnsWithout, listedColumnList, toItem, toListedLetter } from '../items/rows.ts'
import { MergedLetters, readIndex } from '../letters/index-ranges.ts'
import { groupSet, hasGroupFilter } from '../letters/list-letters.ts'

/** A search gives what it found so far: other reads wait for the same thread. */
const readMsMax = 250
/** However slow it is: a step that looks at hardly anything gets nowhere. */
const lookedAtLeast = 64

export function findArchivedLetters(database: Database, query: ArchiveQuery, msMax = readMsMax): ArchivePage {
  const { filter, after, countMax, lookMax } = query
  const names = queuesWithLetters(database, filter.queues)
  const order = {
    table: 'archive',
    column: 'archived_at',
    range: filter.archived ?? {},
    isDescending: true,
    ...(after !== undefined && { after: { value: after.archivedAt, id: after.id } }),
  } as const
  const parts = [...names.keys()].map((queueId) => readIndex(database, order, 'queue_id = ?', [queueId]))
  const merged = new MergedLetters(parts, true)
  const isWanted = checkOf(database, query, names)
  const head = `select ${listedColumnList} from archive where rowid = ?`
  const letters: ListedArchived[] = []
  const until = performance.now() + msMax
  let looked = 0
  let bytes = 0
  let last = after
  while (letters.length < countMax && looked < lookMax && bytes < pageBytesMax) {
    const place = merged.take()
    if (place === undefined) break
    const archivedAt = place.value
    last = { archivedAt, id: place.id }
    looked++
    if (isWanted(place.rowid, archivedAt)) {
      const row = database.array(head, place.rowid) as Values
      const item = toListedLetter(row, names.get(row[0] as number) ?? '')
      letters.push({ item, archivedAt })
      // SQLite reads all of a payload to give its beginning.
      bytes += item.payloadBytes ?? item.payload.length
    }
    if (looked % lookedAtLeast === 0 && performance.now() > until) break
  }
  return { letters, looked, next: merged.isEmpty ? null : (last ?? null) }
}

/** Queues that never had a letter are passed over, however much else of them is archived. */
function queuesWithLetters(
  database: Database,
  queues: readonly string[] | undefined,
): ReadonlyMap<number, string> {
  const rows = database.arrays(
    'select id, name from queues q where exists (select 1 from groups where queue_id = q.id)',
  )
  const wanted = rows.filter(([, name]) => queues === undefined || queues.includes(name as string))
  return new Map(wanted.map(([id, name]) => [id as number, name as string]))
}

function checkOf(
  database: Database,
  { filter }: ArchiveQuery,
  names: ReadonlyMap<number, string>,
): (rowid: number, archivedAt: number) => boolean {
  const groups = hasGroupFilter(filter) ? groupSet(database, filter) : undefined
  const isFailureNeeded = filter.text !== undefined || filter.errorClasses !== undefined
  const left = ['origin', 'history', 'letter', 'headers', 'payload']
  if (!isFailureNeeded) left.push('failure')
  if (filter.key === undefined) left.push('key')
  const sql = `select ${columnsWithout(left)} from archive where rowid = ?`
  return (rowid, archivedAt) => {
    const row = database.array(sql, rowid)
    if (row === undefined) return false
    const item = toItem(row, names.get(row[0] as number) ?? '')
    // What has no group is no letter.
    if (item.groupId === null || groups?.has(item.groupId) === false) return false
    return matchesArchived({ item, archivedAt }, filter)
  }
}
