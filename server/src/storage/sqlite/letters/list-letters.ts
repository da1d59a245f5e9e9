/**
 * Pages of letters. Counts answer the conditions on queue, state, group and redrives: they give the ranges of
 * an index that hold such letters, which are read in order and merged. All other conditions are compared
 * letter by letter, up to `examinedMax` letters and for a limited time.
 */
import { anyClass } from '../../../core/cause.ts'
import {
  type LetterBytes,
  type LetterCursor,
  type LetterFilter,
  type LettersPage,
  type LettersQuery,
  type ListedLetter,
  measureLetter,
  pageBytesMax,
} from '../../contract/letters.ts'
import { readConditions } from '../../shared/counted-filter.ts'
import { matchesLetter } from '../../shared/match-letter.ts'
import { readNumber } from '../../shared/row-values.ts'
import type { Database } from '../connection/database.ts'
import { groupColumns, printConditions } from '../counts/count-conditions.ts'
import {
  columnsWithout,
  itemColumnList,
  listedColumnList,
  readQueueId,
  toItem,
  toListedLetter,
} from '../items/rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import { type FindQuery, findRanges, hasGroupFilter, type RangeFacts } from './index-ranges.ts'
import { type IndexEntry, MergedRanges } from './merge-ranges.ts'

/** Other reads wait for the same thread, so a search returns after this time with what it found. */
const searchMsMax = 250
/** A search also returns after comparing payloads of this size. */
const searchBytesMax = 32 * 2 ** 20

/** `examinedUntil`: for each entry, the number of letters that were read until it was found. */
type FoundLetters = Readonly<{
  entries: readonly IndexEntry[]
  examinedUntil: readonly number[]
  examinedCount: number
  next: LetterCursor | null
}>

export function listLetters(database: Database, query: LettersQuery): LettersPage {
  const { entries, examinedUntil, examinedCount, next } = findLetters(database, query)
  const names = readQueueNames(database)
  const sql = `select ${columnLists[query.bytes]} from items where rowid = ?`
  const letters: ListedLetter[] = []
  let bytes = 0
  for (const [index, entry] of entries.entries()) {
    const row = database.array(sql, entry.rowid)
    if (row === undefined) continue
    const name = names.get(readQueueId(row)) ?? ''
    const letter: ListedLetter = query.bytes === 'head' ? toListedLetter(row, name) : toItem(row, name)
    letters.push(letter)
    // SQLite reads the whole payload to return its beginning.
    if (query.bytes === 'head') bytes += letter.payloadBytes ?? letter.payload.length
    else bytes += measureLetter(letter)
    if (bytes >= pageBytesMax && entry !== entries.at(-1)) {
      return { letters, examinedCount: examinedUntil[index] ?? examinedCount, next: toCursor(entry) }
    }
  }
  return { letters, examinedCount, next }
}

const columnLists: Readonly<Record<LetterBytes, string>> = {
  none: columnsWithout(['key', 'headers', 'payload', 'history']),
  head: listedColumnList,
  all: itemColumnList,
}

export function findLetters(database: Database, query: FindQuery, msMax = searchMsMax): FoundLetters {
  const { countMax, examinedMax } = query
  const { readers, facts } = findRanges(database, query)
  const matches = createMatcher(database, query.filter, facts)
  const hasArrived = createArrivalCheck(database, query.arrivedUntil)
  const merged = new MergedRanges(readers, query.isDescending)
  const entries: IndexEntry[] = []
  const examinedUntil: number[] = []
  const deadline = performance.now() + msMax
  let examinedCount = 0
  let bytes = 0
  let last: IndexEntry | undefined
  while (entries.length < countMax && examinedCount < examinedMax && bytes < searchBytesMax) {
    const entry = merged.take()
    if (entry === undefined) break
    last = entry
    examinedCount++
    const compared = matches?.(entry)
    if (compared?.isMatch !== false && hasArrived(entry)) {
      entries.push(entry)
      examinedUntil.push(examinedCount)
    }
    bytes += compared?.payloadBytes ?? 0
    // After each letter: a single payload of 16 MiB can take longer than the whole search may.
    if (matches !== undefined && performance.now() > deadline) break
  }
  if (merged.isEmpty) return { entries, examinedUntil, examinedCount, next: null }
  return { entries, examinedUntil, examinedCount, next: last ? toCursor(last) : (query.after ?? null) }
}

function toCursor({ value, id }: IndexEntry): LetterCursor {
  return { value, id }
}

/** Letters without a number arrived before letters were numbered. */
function createArrivalCheck(
  database: Database,
  arrivedUntil: number | undefined,
): (entry: IndexEntry) => boolean {
  if (arrivedUntil === undefined) return () => true
  const sql = 'select coalesce(arrival, 0) from items where rowid = ?'
  return ({ rowid }) => readNumber(database.array(sql, rowid) ?? [0], 0) <= arrivedUntil
}

/**
 * Returns a function that compares a letter with the conditions that the ranges do not answer; undefined if
 * they answer all. `payloadBytes`: the size of the payload, if it was read.
 */
function createMatcher(
  database: Database,
  filter: LetterFilter,
  facts: RangeFacts,
): ((entry: IndexEntry) => Readonly<{ isMatch: boolean; payloadBytes: number }>) | undefined {
  const rest = removeAnswered(database, filter, facts)
  const hasRest = Object.values(rest).some((value) => value !== undefined)
  const groupIds = facts.isExact || !hasGroupFilter(filter) ? undefined : readGroupIds(database, filter)
  if (!hasRest && groupIds === undefined) return undefined

  const sql = `select ${listNeededColumns(rest)} from items where rowid = ?`
  const names = readQueueNames(database)
  return ({ rowid }) => {
    const row = database.array(sql, rowid)
    if (row === undefined) return { isMatch: false, payloadBytes: 0 }
    const item = toItem(row, names.get(readQueueId(row)) ?? '')
    const payloadBytes = item.payload.length
    const isOtherGroup = groupIds !== undefined && (item.groupId === null || !groupIds.has(item.groupId))
    return { isMatch: !isOtherGroup && matchesLetter(item, rest), payloadBytes }
  }
}

/** Removes the conditions that the ranges answer. The rest is compared letter by letter. */
function removeAnswered(database: Database, filter: LetterFilter, facts: RangeFacts): LetterFilter {
  const { queues, states, groupIds, origins, reasons, slugs, errorClasses, redrives, ...others } = filter
  const { died, updated, ...rest } = others
  return {
    ...rest,
    ...(died !== undefined && facts.times !== 'died' && { died }),
    ...(updated !== undefined && facts.times !== 'updated' && { updated }),
    ...(queues !== undefined && !facts.isExact && { queues }),
    ...(states !== undefined && !facts.isExact && { states }),
    ...(redrives !== undefined && !facts.isExact && { redrives }),
    ...(errorClasses !== undefined && hasOpenGroups(database) && { errorClasses }),
  }
}

/** The groups that match the filter. */
export function readGroupIds(database: Database, filter: LetterFilter): ReadonlySet<number> {
  const { where, values } = printConditions(database, readConditions(filter, true), groupColumns)
  const rows = database.arrays(`select g.id from groups g where ${where}`, ...values)
  return new Set(rows.map((row) => readNumber(row, 0)))
}

/** Whether there are groups whose letters may have any error class (`foldCause`). */
function hasOpenGroups(database: Database): boolean {
  const sql = "select 1 from groups where error_class = ? and slug = 'other' limit 1"
  return database.array(sql, anyClass) !== undefined
}

/** To read columns that are not compared would cost more than the comparison. */
function listNeededColumns(filter: LetterFilter): string {
  const { text, lastFailed, errorClasses, dueBy } = filter
  const needsFailure = [text, lastFailed, errorClasses].some((value) => value !== undefined)
  return columnsWithout([
    'origin',
    'history',
    ...(needsFailure ? [] : ['failure']),
    ...(dueBy === undefined ? ['letter'] : []),
    ...(filter.key === undefined ? ['key'] : []),
    ...(filter.header === undefined ? ['headers'] : []),
    ...(filter.json === undefined ? ['payload'] : []),
  ])
}
