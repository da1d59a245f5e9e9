/** Reads some letters of each range of an index and merges them in order, in one statement. */
import {
  type LetterBytes,
  type LetterCursor,
  type LetterFilter,
  type ListedLetter,
  pageBytesMax,
  type RangesQuery,
} from '../../contract/letters.ts'
import { growth } from '../../search/pacer.ts'
import { comparedBytesMax } from '../../search/range-limits.ts'
import { searchedPayloadMax } from '../../shared/letters/match-letter.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Row } from '../connection/connection.ts'
import { encodeInt4s } from '../connection/encode-arrays.ts'
import type { Parameter } from '../counts/count-conditions.ts'
import { type ColumnName, payloadStart, readColumns, toListedLetter, traceHeader } from '../items/rows.ts'
import { type IndexRanges, orderColumns, type Reader } from './index-ranges.ts'
import { printPrefilter } from './prefilter.ts'

/** The first statement reads at least this many letters of each range. */
const perRangeMin = 4

const byteColumns: readonly ColumnName[] = ['payload', 'key', 'headers', 'history']
/** About the bytes that `measureLetter` returns, without reading the letter. */
const letterBytes =
  'octet_length(f.payload) + coalesce(octet_length(f.headers), 0) + coalesce(octet_length(f.history), 0)'

const searchedBytes = `case when octet_length(f.payload) <= ${searchedPayloadMax} then octet_length(f.payload) else 0 end`

/**
 * How many letters a statement examined, the last of them, and whether the ranges have no more. For
 * statements with the tables `probed`, `edge` and `examined`.
 */
const examinedSummary = `select count(*) as examined_count,
    max(l.at) filter (where l.is_last) as last_at, max(l.id) filter (where l.is_last) as last_id,
    count(*) = (select count(*) from probed) and not exists (select from edge) as is_end
  from (select l.*, l.rank = max(l.rank) over () as is_last from examined l) l`

/** A letter that passed in the database. `rank`: its position among the letters that the statement read. */
export type Hit = Readonly<{ item: ListedLetter; cursor: LetterCursor; rank: number }>
export type Page = Readonly<{
  hits: readonly Hit[]
  /** The number of letters that the statement read. */
  examinedCount: number
  /** The last of these letters. */
  last: LetterCursor | undefined
  /** The ranges have no letters after these. */
  isEnd: boolean
}>
/** `count`: read at most this many letters. `wanted`: return at most this many. `round`: see `ScanBounds`. */
export type Step = Readonly<{
  after?: LetterCursor
  count: number
  wanted: number
  round: number
  bytes: LetterBytes
}>

export async function readPage(reader: Reader, ranges: IndexRanges, step: Step): Promise<Page> {
  const { text, values } = preparePage(ranges, step)
  const rows = await reader.query({ text }, values)
  const [first = {}] = rows
  const examinedCount = readNumber(first, 'examined_count')
  const last =
    examinedCount === 0 ? undefined : { value: readNumber(first, 'last_at'), id: readText(first, 'last_id') }
  const hits = rows.filter((row) => row.rank !== null).map(decodeHit)
  return { hits, examinedCount, last, isEnd: first.is_end === true }
}

/** From a row of `preparePage` that has a letter. */
function decodeHit(row: Row): Hit {
  const item = toListedLetter(row, readText(row, 'queue_name'))
  return { item, cursor: { value: readNumber(row, 'at'), id: item.id }, rank: readNumber(row, 'rank') }
}

/**
 * How many letters to read of each range. Few at first, and more in each round: in proportion to the size of
 * the range, if it is known, so that the ranges with the most letters may complete the page.
 */
function countPerRange(count: number, { count: ranges, sizes }: IndexRanges, round: number): number[] {
  if (ranges === 1) return [count]
  const total = sizes?.reduce((sum, size) => sum + size, 0) ?? ranges
  return Array.from({ length: ranges }, (_, range) => {
    const expected = (count * (sizes?.[range] ?? 1)) / Math.max(total, 1)
    // The power is bounded, because it must stay an integer.
    const first = Math.max(perRangeMin, Math.ceil(2 * expected))
    return Math.min(count, first * growth ** Math.min(round, 8))
  })
}

/**
 * `probed`: the first letters of each range. `edge`: a range that returned all that were requested may have
 * more, so only letters up to the first such end are in order. `ranked`: the letters up to the edge, merged.
 * `examined`: as many of them as the limit of bytes allows. `hits`: the letters that pass the conditions.
 */
export function preparePage(ranges: IndexRanges, step: Step): Readonly<{ text: string; values: unknown[] }> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const { filter, order: orderName, isDescending } = ranges.query
  const { table, column } = orderColumns[orderName]
  const direction = isDescending ? 'desc' : 'asc'
  const order = (alias: string, name: string) => `${alias}.${name} ${direction}, ${alias}.id ${direction}`

  const numbers = [...ranges.keys, countPerRange(step.count, ranges, step.round)]
  const keys = `unnest(${numbers.map((key) => `${parameter(encodeInt4s(key))}::int4[]`).join(', ')}) as w(a, b, c, few)`
  const bounds = [ranges.printWhere(parameter), ...printBounds(ranges.query, step.after, parameter)]
  const isWhole = step.bytes === 'all'
  const isSized = filter.json !== undefined || filter.payloadText !== undefined || isWhole
  // A payload that is searched as text is read as a whole if it matches.
  const size = isWhole || filter.payloadText !== undefined ? letterBytes : searchedBytes
  // The inner limit is for the planner, which assumes a tenth of all rows for a limit that is not a
  // parameter.
  const probed = `select p.*, w.few from ${keys} cross join lateral (
      select o.*, row_number() over () as k from (
        select i.* from (
          select f.ctid as location, f.${column} as at, f.id${isSized ? `, (${size})::int8 as size` : ''}
          from redrive.${table} f where ${bounds.join(' and ')}
          order by ${order('f', column)} limit ${parameter(step.count)}::int8
        ) i limit w.few
      ) o
    ) p`
  const ranked = `select p.location, p.at, p.id, row_number() over (order by ${order('p', 'at')}) as rank
      ${isSized ? `, sum(p.size) over (order by ${order('p', 'at')}) - p.size as before_it` : ''}
    from probed p where not exists (select from edge) or (p.at, p.id) ${isDescending ? '>=' : '<='} (select e.at, e.id from edge e)
    order by ${order('p', 'at')} limit ${parameter(step.count)}::int8`
  const { arrivedUntil } = ranges.query
  const conditions = [
    ...printPrefilter(filter, ranges.facts, parameter),
    ...ranges.conditions,
    ...(arrivedUntil === undefined ? [] : [`coalesce(f.arrival, 0) <= ${parameter(arrivedUntil)}::int8`]),
  ]
  const checked =
    conditions.length === 0
      ? ''
      : `cross join lateral (
          select from redrive.${table} f where f.ctid = l.location and ${conditions.join(' and ')} offset 0) j`
  const columns = listColumns(filter, step.bytes)
  const text = `with probed as materialized (${probed}
    ), edge as materialized (select p.at, p.id from probed p where p.k = p.few order by ${order('p', 'at')} limit 1
    ), ranked as materialized (${ranked}
    ), examined as materialized (
      select r.* from ranked r ${isSized ? `where r.before_it < ${isWhole ? pageBytesMax : comparedBytesMax}` : ''}
    ), hits as materialized (
      select l.location, l.at, l.id, l.rank from examined l ${checked}
      order by l.rank limit ${parameter(step.wanted)}::int8
    )
    select m.examined_count, m.last_at, m.last_id, m.is_end, h.rank, h.at, q.name as queue_name, ${columns}
    from (
        ${examinedSummary}
      ) m
      left join (
        hits h cross join lateral (select f.* from redrive.${table} f where f.ctid = h.location offset 0) f
          cross join lateral (select q.name from redrive.queues q where q.id = f.queue_id offset 0) q
      ) on true
    order by h.rank`
  return { text, values }
}

/**
 * The bounds of the time by which the page is ordered. On the side where the page starts only the nearer of
 * cursor and time range is printed: with both, the database may start at the farther one and skip all rows
 * between them.
 */
function printBounds(
  { filter, order, isDescending }: RangesQuery,
  after: LetterCursor | undefined,
  parameter: Parameter,
): readonly string[] {
  const { column, times } = orderColumns[order]
  const { from, until } = filter[times] ?? {}
  const [start, end] = isDescending ? [until, from] : [from, until]
  const [beyond, before] = isDescending ? ['<', '>'] : ['>', '<']
  const bounds: string[] = []
  if (end !== undefined) bounds.push(`f.${column} ${before}= ${parameter(end)}::int8`)
  if (after !== undefined && isNearer(after.value, start, isDescending)) {
    const cursor = `(${parameter(after.value)}::int8, ${parameter(after.id)}::text)`
    bounds.push(`(f.${column}, f.id) ${beyond} ${cursor}`)
  } else if (start !== undefined) bounds.push(`f.${column} ${beyond}= ${parameter(start)}::int8`)
  return bounds
}

/** Whether a page that starts at the cursor starts within the time range. */
function isNearer(cursor: number, start: number | undefined, isDescending: boolean): boolean {
  if (start === undefined) return true
  return isDescending ? cursor <= start : cursor >= start
}

/** Bytes are read only if they are requested or compared. */
function listColumns(filter: LetterFilter, bytes: LetterBytes): string {
  const needed = new Set<ColumnName>([
    ...(bytes === 'all' ? byteColumns : []),
    ...(filter.json === undefined && filter.payloadText === undefined ? [] : (['payload'] as const)),
    ...(filter.key === undefined && bytes === 'none' ? [] : (['key'] as const)),
    ...(filter.header === undefined && filter.traceIds === undefined ? [] : (['headers'] as const)),
  ])
  const columns = readColumns.filter((name) => !byteColumns.includes(name) || needed.has(name))
  const list = columns.map((name) => `f.${name}`).join(', ')
  if (bytes !== 'head') return list
  const listed = [
    ...(needed.has('headers') ? [] : [traceHeader]),
    ...(needed.has('payload') ? [] : [payloadStart]),
  ]
  return [list, ...listed].join(', ')
}
