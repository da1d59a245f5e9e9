/**
 * One step of a search (storage/search). The ranges of an index are read in order and merged. The conditions
 * that the ranges do not answer are compared letter by letter, up to the limits of the step.
 */
import { anyClass } from '../../../core/dead-letters/cause.ts'
import {
  type FoundLetter,
  type LetterBytes,
  type LetterCursor,
  type LetterFilter,
  type LetterScan,
  type ListedLetter,
  measureLetter,
  pageBytesMax,
  type ScanBounds,
} from '../../contract/letters.ts'
import { comparedBytesMax } from '../../search/range-limits.ts'
import { readConditions } from '../../shared/letters/counted-filter.ts'
import { matchesLetter } from '../../shared/letters/match-letter.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import { groupColumns, printConditions } from '../counts/count-conditions.ts'
import {
  itemColumnList,
  listedColumnList,
  omitColumns,
  readQueueId,
  toItem,
  toListedLetter,
} from '../items/rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import { hasGroupFilter, type IndexRanges, orderColumns } from './index-ranges.ts'
import { type IndexEntry, mergeRanges } from './merge-ranges.ts'

export function scanLetters(database: Database, ranges: IndexRanges, bounds: ScanBounds): LetterScan {
  const { entries, examinedUntil, examinedCount, next } = findEntries(database, ranges, bounds)
  const names = readQueueNames(database)
  const { table } = orderColumns[ranges.query.order]
  const sql = `select ${columnLists[bounds.bytes]} from ${table} where rowid = ?`
  const found: FoundLetter[] = []
  let bytes = 0
  for (const [index, entry] of entries.entries()) {
    const row = database.getArray(sql, entry.rowid)
    if (row === undefined) continue
    const name = names.get(readQueueId(row)) ?? ''
    const item: ListedLetter = bounds.bytes === 'head' ? toListedLetter(row, name) : toItem(row, name)
    found.push({ item, at: entry.value })
    // SQLite reads the whole payload to return its beginning.
    bytes += item.payloadBytes ?? measureLetter(item)
    if (bytes >= pageBytesMax && entry !== entries.at(-1)) {
      return { found, examinedCount: examinedUntil[index] ?? examinedCount, next: toCursor(entry) }
    }
  }
  return { found, examinedCount, next }
}

const columnLists: Readonly<Record<LetterBytes, string>> = {
  none: omitColumns(['key', 'headers', 'payload', 'history']),
  head: listedColumnList,
  all: itemColumnList,
}

/** `examinedUntil`: for each entry, the number of letters that were read until it was found. */
export type FoundEntries = Readonly<{
  entries: readonly IndexEntry[]
  examinedUntil: readonly number[]
  examinedCount: number
  next: LetterCursor | null
}>

/** A step without reading the letters that it finds. */
export function findEntries(
  database: Database,
  ranges: IndexRanges,
  bounds: Omit<ScanBounds, 'bytes' | 'round'>,
): FoundEntries {
  const { countMax, examinedMax, msMax, after } = bounds
  const matches = createMatcher(database, ranges)
  const hasArrived = createArrivalCheck(database, ranges.query.arrivedUntil)
  const merged = mergeRanges(database, ranges, after)
  const entries: IndexEntry[] = []
  const examinedUntil: number[] = []
  const deadline = performance.now() + msMax
  let examinedCount = 0
  let bytes = 0
  let last: IndexEntry | undefined
  while (entries.length < countMax && examinedCount < examinedMax && bytes < comparedBytesMax) {
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
    // After each letter: a single payload of 16 MiB can take longer than the whole step may.
    if (matches !== undefined && performance.now() > deadline) break
  }
  if (merged.isEmpty) return { entries, examinedUntil, examinedCount, next: null }
  return { entries, examinedUntil, examinedCount, next: last ? toCursor(last) : (after ?? null) }
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
  return ({ rowid }) => readNumber(database.getArray(sql, rowid) ?? [0], 0) <= arrivedUntil
}

/**
 * Returns a function that compares a letter with the conditions that the ranges do not answer; undefined if
 * they answer all. `payloadBytes`: the size of the payload, if it was read.
 */
function createMatcher(
  database: Database,
  ranges: IndexRanges,
): ((entry: IndexEntry) => Readonly<{ isMatch: boolean; payloadBytes: number }>) | undefined {
  const { filter, order } = ranges.query
  const { table } = orderColumns[order]
  const rest = removeAnswered(database, ranges)
  const hasRest = Object.values(rest).some((value) => value !== undefined)
  const groupIds = ranges.isExact || !hasGroupFilter(filter) ? undefined : readGroupIds(database, filter)
  // The archive also has items that are not letters. They have no group.
  if (!hasRest && groupIds === undefined && table === 'items') return undefined

  const sql = `select ${listNeededColumns(rest)} from ${table} where rowid = ?`
  const names = readQueueNames(database)
  return ({ rowid }) => {
    const row = database.getArray(sql, rowid)
    if (row === undefined) return { isMatch: false, payloadBytes: 0 }
    const item = toItem(row, names.get(readQueueId(row)) ?? '')
    const payloadBytes = item.payload.length
    const isOther = item.groupId === null || groupIds?.has(item.groupId) === false
    return { isMatch: !isOther && matchesLetter(item, rest), payloadBytes }
  }
}

/** Removes the conditions that the ranges answer. The rest is compared letter by letter. */
function removeAnswered(database: Database, ranges: IndexRanges): LetterFilter {
  const { filter, order } = ranges.query
  const { queues, states, groupIds, origins, errorCodes, slugs, errorClasses, retryCount, ...others } = filter
  // Only ranges in the order of the query are limited to its time range.
  const answered = ranges.isUnordered ? undefined : orderColumns[order].times
  const rest = Object.fromEntries(Object.entries(others).filter(([name]) => name !== answered))
  return {
    ...rest,
    ...(queues !== undefined && !ranges.isExact && { queues }),
    ...(states !== undefined && !ranges.isExact && { states }),
    ...(retryCount !== undefined && !ranges.isExact && { retryCount }),
    ...(errorClasses !== undefined && hasOpenGroups(database) && { errorClasses }),
  }
}

/** The groups that match the filter. */
function readGroupIds(database: Database, filter: LetterFilter): ReadonlySet<number> {
  const { where, values } = printConditions(database, readConditions(filter, true), groupColumns)
  const rows = database.readArrays(`select g.id from groups g where ${where}`, ...values)
  return new Set(rows.map((row) => readNumber(row, 0)))
}

/** Whether there are groups whose letters may have any error class (`foldCause`). */
function hasOpenGroups(database: Database): boolean {
  const sql = "select 1 from groups where error_class = ? and slug = 'other' limit 1"
  return database.getArray(sql, anyClass) !== undefined
}

/** To read columns that are not compared would cost more than the comparison. */
function listNeededColumns(filter: LetterFilter): string {
  const { text, lastFailed, errorClasses, dueBy } = filter
  const needsFailure = [text, lastFailed, errorClasses].some((value) => value !== undefined)
  return omitColumns([
    'origin',
    'history',
    ...(needsFailure ? [] : ['failure']),
    ...(dueBy === undefined ? ['letter'] : []),
    ...(filter.key === undefined ? ['key'] : []),
    ...(filter.header === undefined && filter.traceIds === undefined ? ['headers'] : []),
    ...(filter.json === undefined && filter.payloadText === undefined ? ['payload'] : []),
  ])
}
