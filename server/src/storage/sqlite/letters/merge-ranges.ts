/** Reads ranges of an index in order, and merges them. No row of the table is read for that. */
import type { LetterCursor } from '../../contract/letters.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Bound, Database, Values } from '../connection/database.ts'
import { type IndexRanges, orderColumns } from './index-ranges.ts'

/** `value`: the time by which the range is ordered. */
export type IndexEntry = Readonly<{ value: number; id: string; rowid: number }>
/** Returns the next entries with each call, and none after the last. */
type RangeReader = (countMax: number) => readonly IndexEntry[]

/** Merges the entries of all ranges after the cursor. */
export function mergeRanges(
  database: Database,
  ranges: IndexRanges,
  after: LetterCursor | undefined,
): MergedRanges {
  const { isDescending } = ranges.query
  const readers = ranges.isUnordered
    ? [sortRows(readUnordered(database, ranges), isDescending, after)]
    : ranges.ranges.map((values) => readRange(database, ranges, values, after))
  return new MergedRanges(readers, isDescending)
}

function readUnordered(database: Database, { query, where, ranges }: IndexRanges): Values[] {
  const { table, column } = orderColumns[query.order]
  const sql = `select ${column}, id, rowid from ${table} where ${where}`
  return ranges.flatMap((values) => database.readArrays(sql, ...values))
}

function readRange(
  database: Database,
  { query, where }: IndexRanges,
  values: readonly Bound[],
  after: LetterCursor | undefined,
): RangeReader {
  const { filter, order, isDescending } = query
  const { table, column, times } = orderColumns[order]
  const { from, until } = filter[times] ?? {}
  const [first, last] = isDescending ? [until, from] : [from, until]
  const [beyond, before] = isDescending ? ['<', '>'] : ['>', '<']
  const direction = isDescending ? 'desc' : 'asc'
  const end = last === undefined ? '' : `and ${column} ${before}= ?`
  const tail = `${end} order by ${column} ${direction}, id ${direction} limit +?`
  const select = `select ${column}, id, rowid from ${table} where ${where}`

  let position = startAfter(after, isDescending, first)
  let isEnded = false
  return (countMax) => {
    if (isEnded) return []
    let start = ''
    const bound = [...values]
    if (position !== undefined) {
      start = `and (${column}, id) ${beyond} (?, ?)`
      bound.push(position.value, position.id)
    } else if (first !== undefined) {
      start = `and ${column} ${beyond}= ?`
      bound.push(first)
    }
    if (last !== undefined) bound.push(last)
    const entries = database.readArrays(`${select} ${start} ${tail}`, ...bound, countMax).map(decodeEntry)
    isEnded = entries.length < countMax
    position = entries.at(-1) ?? position
    return entries
  }
}

/** The cursor; undefined if the time range starts behind it, so that the page starts with the range. */
function startAfter(
  after: LetterCursor | undefined,
  isDescending: boolean,
  first: number | undefined,
): LetterCursor | undefined {
  if (after === undefined || first === undefined) return after
  return (isDescending ? after.value <= first : after.value >= first) ? after : undefined
}

/** Sorts rows that were all read, in the order of the query. */
function sortRows(
  rows: readonly Values[],
  isDescending: boolean,
  after: LetterCursor | undefined,
): RangeReader {
  const compare = createComparison(isDescending)
  let entries = rows.map(decodeEntry).sort(compare)
  if (after !== undefined) entries = entries.filter((entry) => compare(entry, after) > 0)
  let read = 0
  return (countMax) => {
    const next = entries.slice(read, read + countMax)
    read += next.length
    return next
  }
}

/** From a row of the ordering column, id and rowid. */
function decodeEntry(row: Values): IndexEntry {
  return { value: readNumber(row, 0), id: readText(row, 1), rowid: readNumber(row, 2) }
}

function createComparison(isDescending: boolean): (a: LetterCursor, b: LetterCursor) => number {
  const sign = isDescending ? -1 : 1
  return (a, b) => sign * (a.value - b.value || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
}

/** The first entries that are read of a range. Each further read takes twice as many, up to `chunkMax`. */
const chunkMin = 16
const chunkMax = 1_024

type Range = { read: RangeReader; entries: readonly IndexEntry[]; position: number; chunk: number }

class MergedRanges {
  /** The ranges that are not at their end, in the order of their next entries. */
  readonly #ranges: Range[] = []
  readonly #compare: ReturnType<typeof createComparison>

  constructor(readers: readonly RangeReader[], isDescending: boolean) {
    this.#compare = createComparison(isDescending)
    const chunk = chunkMin
    for (const read of readers) {
      const entries = read(chunk)
      if (entries.length > 0) this.#ranges.push({ read, entries, position: 0, chunk })
    }
    this.#ranges.sort((a, b) => this.#compare(getNextEntry(a), getNextEntry(b)))
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0
  }

  take(): IndexEntry | undefined {
    const range = this.#ranges.shift()
    if (range === undefined) return undefined
    const entry = getNextEntry(range)
    range.position++
    if (range.position === range.entries.length) {
      range.chunk = Math.min(range.chunk * 2, chunkMax)
      range.entries = range.read(range.chunk)
      range.position = 0
    }
    if (range.entries.length > 0) this.#ranges.splice(this.#findRank(getNextEntry(range)), 0, range)
    return entry
  }

  /** The number of other ranges whose next entry comes before this one. */
  #findRank(entry: IndexEntry): number {
    let low = 0
    let high = this.#ranges.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(getNextEntry(this.#ranges[middle] as Range), entry) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

function getNextEntry(range: Range): IndexEntry {
  return range.entries[range.position] as IndexEntry
}
