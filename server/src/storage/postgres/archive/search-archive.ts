/**
 * Finds archived letters by a filter. Reads the only index of the archive, by queue and time, some entries of
 * each queue at once, and checks the conditions letter by letter, in statements that are each short.
 *
 * A queue that returned as many entries as were requested may have more. So only the entries up to the first
 * such end (the edge) are in order, and no letter beyond it counts as examined.
 */
import type {
  ArchiveCursor,
  ArchiveFilter,
  ArchivePage,
  ArchiveQuery,
  ListedArchived,
} from '../../contract/letters.ts'
import { hasGroupConditions, readConditions } from '../../shared/counted-filter.ts'
import { matchesArchived } from '../../shared/match-letter.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import type { Row } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import {
  groupFieldColumns,
  listConditions,
  type Parameter,
  printConditions,
  printTexts,
} from '../counts/count-conditions.ts'
import { listedColumns, toListedLetter } from '../items/rows.ts'
import { examinedSummary } from '../letters/merge-ranges.ts'
import { printPrefilter } from '../letters/prefilter.ts'

/** Letters that one statement looks at: more after a fast statement. */
const stepFirst = 1_000
const stepMax = 8_000
const fastMs = 40
/** A search returns after this time with what it found. */
const searchMsMax = 400
/**
 * Letters are archived queue by queue, so neighbours are often of one queue. Therefore this many times more
 * entries are read than letters are examined.
 */
const readPerExamined = 8
/** At least this many entries of each queue are read at once, and more with each statement. */
const entriesMin = 16

export async function findArchivedLetters(
  connections: Connections,
  query: ArchiveQuery,
): Promise<ArchivePage> {
  const { filter, countMax, examinedMax } = query
  const letters: ListedArchived[] = []
  const deadline = performance.now() + searchMsMax
  let { after } = query
  let examinedCount = 0
  let step = stepFirst
  for (let round = 0; examinedCount < examinedMax && letters.length < countMax; round++) {
    const startedAt = performance.now()
    const missing = countMax - letters.length
    const count = Math.min(step, examinedMax - examinedCount)
    const page = await readPage(connections, filter, { after, count, wanted: missing + 1, round })
    if (performance.now() - startedAt < fastMs) step = Math.min(step * 2, stepMax)
    const matching = page.hits.filter(({ found }) => matchesArchived(found, filter))
    const taken = matching.slice(0, missing)
    letters.push(...taken.map(({ found }) => found))
    // If one letter more than requested matches, there are more letters for certain.
    const lastHit = matching.length > missing ? taken.at(-1) : page.hits[missing]
    if (lastHit === undefined && page.isEnd)
      return { letters, examinedCount: examinedCount + page.examinedCount, next: null }
    examinedCount += lastHit?.rank ?? page.examinedCount
    after = lastHit?.cursor ?? page.last ?? after
    if (performance.now() > deadline) break
  }
  return { letters, examinedCount, next: after ?? null }
}

/**
 * `count`: look at most at this many letters. `wanted`: return at most this many. `round`: grows with each
 * statement for one page.
 */
type Step = Readonly<{ after: ArchiveCursor | undefined; count: number; wanted: number; round: number }>
/**
 * A letter that passed in the database. `rank`: its position among the letters that the statement examined.
 */
type Hit = Readonly<{ found: ListedArchived; cursor: ArchiveCursor; rank: number }>
type Page = Readonly<{
  hits: readonly Hit[]
  /** The number of letters that the statement examined. */
  examinedCount: number
  /** The last of these letters. */
  last: ArchiveCursor | undefined
  /** The archive has no letters after these. */
  isEnd: boolean
}>

async function readPage(connections: Connections, filter: ArchiveFilter, step: Step): Promise<Page> {
  const { text, values } = searchStatement(filter, step)
  const rows = await connections.read({ text }, values)
  const [first = {}] = rows
  const examinedCount = readNumber(first, 'examined_count')
  const last =
    examinedCount === 0
      ? undefined
      : { archivedAt: readNumber(first, 'last_at'), id: readText(first, 'last_id') }
  const hits = rows.filter((row) => row.rank !== null).map(decodeHit)
  return { hits, examinedCount, last, isEnd: first.is_end === true }
}

/** From a row of `searchStatement` that has a letter. */
function decodeHit(row: Row): Hit {
  const archivedAt = readNumber(row, 'archived_at')
  const item = toListedLetter(row, readText(row, 'queue_name'))
  return { found: { item, archivedAt }, cursor: { archivedAt, id: item.id }, rank: readNumber(row, 'rank') }
}

/**
 * `probed`: the next entries of each queue. `edge`: see the top of this file. `examined`: the entries up to
 * the edge, merged. `hits`: the letters that pass the conditions.
 */
export function searchStatement(
  filter: ArchiveFilter,
  { after, count, wanted, round }: Step,
): Readonly<{ text: string; values: unknown[] }> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const { queues } = filter
  const named = queues === undefined ? '' : `and q.name = any (${printTexts(queues, parameter)})`
  const limit = parameter(count)
  const bounds = printBounds(filter, after, parameter)
  const text = `with chosen as materialized (select q.id, q.name from redrive.queues q where q.is_sourced ${named}
    ), share as materialized (
      select least(${limit}::int8, greatest(${entriesMin}, ${readPerExamined} * ${limit}::int8 / greatest(count(*), 1)) * ${4 ** Math.min(round, 8)}) as few
      from chosen
    ), probed as materialized (
      select p.*, s.few, c.name from share s cross join chosen c cross join lateral (
        select o.*, row_number() over () as k from (
          select i.* from (
            select f.ctid as location, f.archived_at as at, f.id from redrive.archive f
            where ${['f.queue_id = c.id', ...bounds].join(' and ')}
            order by f.archived_at desc, f.id desc limit ${limit}::int8
          ) i limit s.few
        ) o
      ) p
    ), edge as materialized (select p.at, p.id from probed p where p.k = p.few order by p.at desc, p.id desc limit 1
    ), examined as materialized (
      select p.location, p.at, p.id, p.name, row_number() over (order by p.at desc, p.id desc) as rank from probed p
      where not exists (select from edge) or (p.at, p.id) >= (select e.at, e.id from edge e)
      order by p.at desc, p.id desc limit ${limit}::int8
    ), hits as materialized (
      select l.location, l.name, l.rank from examined l cross join lateral (
        select from redrive.archive f where f.ctid = l.location and ${listLetterConditions(filter, parameter).join(' and ')} offset 0
      ) j order by l.rank limit ${parameter(wanted)}::int8
    )
    select m.examined_count, m.last_at, m.last_id, m.is_end, h.rank, h.name as queue_name, f.archived_at, ${listedColumns}
    from (
        ${examinedSummary}
      ) m
      left join (
        hits h cross join lateral (select f.* from redrive.archive f where f.ctid = h.location offset 0) f
      ) on true
    order by h.rank`
  return { text, values }
}

/**
 * On the side where the page starts, only the nearer of cursor and time range is printed: with both, the
 * database may start at the farther one and skip all rows between them.
 */
function printBounds(
  { archived }: ArchiveFilter,
  after: ArchiveCursor | undefined,
  parameter: Parameter,
): readonly string[] {
  const { from, until } = archived ?? {}
  const bounds: string[] = []
  if (from !== undefined) bounds.push(`f.archived_at >= ${parameter(from)}::int8`)
  if (after !== undefined && after.archivedAt <= (until ?? after.archivedAt)) {
    bounds.push(
      `(f.archived_at, f.id) < (${parameter(after.archivedAt)}::int8, ${parameter(after.id)}::text)`,
    )
  } else if (until !== undefined) bounds.push(`f.archived_at <= ${parameter(until)}::int8`)
  return bounds
}

/** The conditions on each letter. Items that are not letters have no group. */
function listLetterConditions(filter: ArchiveFilter, parameter: Parameter): readonly string[] {
  const { archived, sourceIds, queues, ...rest } = filter
  const conditions = ['f.group_id is not null', ...printPrefilter(rest, { order: 'updated_at' }, parameter)]
  const counted = readConditions(filter, true)
  conditions.push(...listConditions(counted, { group: 'f.group_id' }, parameter))
  if (hasGroupConditions(filter)) {
    const where = printConditions(counted, groupFieldColumns, parameter)
    conditions.push(`f.group_id = any (array(select g.id from redrive.groups g where ${where}))`)
  }
  if (sourceIds !== undefined) {
    conditions.push(`f.source_id = any (${printTexts(sourceIds, parameter)})`)
  }
  return conditions
}
