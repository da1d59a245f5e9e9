/**
 * Archived letters that match. Its one index, by queue and time, is read in order, a few of each queue at once; what is asked for
 * is asked of one letter after the other, in statements that are each short.
 *
 * Of a queue that gave all that were asked of it there may be more: nothing beyond the last one of the first such queue (the
 * edge) counts as looked at.
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
import { prefilter } from '../letters/prefilter.ts'

const stepFirst = 1_000
const stepMax = 8_000
const stepMsFew = 40
/** A search gives what it found so far. */
const searchMsMax = 400
/** Letters are archived queue by queue, so those that are next to each other are often of one: more are read than are looked at. */
const spread = 8
/** Of each queue at least so many at once, and more with each statement. */
const fewMin = 16

export async function findArchivedLetters(
  connections: Connections,
  query: ArchiveQuery,
): Promise<ArchivePage> {
  const { filter, countMax, lookMax } = query
  const letters: ListedArchived[] = []
  const until = performance.now() + searchMsMax
  let { after } = query
  let looked = 0
  let step = stepFirst
  for (let round = 0; looked < lookMax && letters.length < countMax; round++) {
    const startedAt = performance.now()
    const wanted = countMax - letters.length + 1
    const look = { after, count: Math.min(step, lookMax - looked), wanted, round }
    const page = await lookAt(connections, filter, look)
    if (performance.now() - startedAt < stepMsFew) step = Math.min(step * 2, stepMax)
    const matching = page.hits.filter(({ found }) => matchesArchived(found, filter))
    const room = matching.slice(0, countMax - letters.length)
    letters.push(...room.map(({ found }) => found))
    // One more than asked for: now it is certain that there is more.
    const lastHit = matching.length > room.length ? room.at(-1) : page.hits[wanted - 1]
    if (lastHit === undefined && page.isEnd) return { letters, looked: looked + page.looked, next: null }
    looked += lastHit?.rank ?? page.looked
    after = lastHit?.place ?? page.last ?? after
    if (performance.now() > until) break
  }
  return { letters, looked, next: after ?? null }
}

type Look = Readonly<{ after: ArchiveCursor | undefined; count: number; wanted: number; round: number }>
type Hit = Readonly<{ found: ListedArchived; place: ArchiveCursor; rank: number }>
type Page = Readonly<{
  hits: readonly Hit[]
  looked: number
  last: ArchiveCursor | undefined
  isEnd: boolean
}>

async function lookAt(connections: Connections, filter: ArchiveFilter, look: Look): Promise<Page> {
  const { text, values } = archiveStatement(filter, look)
  const rows = await connections.read({ text }, values)
  const [first] = rows
  const looked = first?.looked as number
  return {
    hits: rows.filter((row) => row.rank !== null).map(hitOf),
    looked,
    last: looked === 0 ? undefined : { archivedAt: first?.last_at as number, id: first?.last_id as string },
    isEnd: first?.is_end === true,
  }
}

function hitOf(row: Row): Hit {
  const archivedAt = row.archived_at as number
  const item = toListedLetter(row, row.queue_name as string)
  return { found: { item, archivedAt }, place: { archivedAt, id: item.id }, rank: row.rank as number }
}

export function archiveStatement(
  filter: ArchiveFilter,
  { after, count, wanted, round }: Look,
): Readonly<{ text: string; values: unknown[] }> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const { queues } = filter
  const named = queues === undefined ? '' : `and q.name = any (${printTexts(queues, parameter)})`
  const limit = parameter(count)
  const bounds = boundsOf(filter, after, parameter)
  const text = `with chosen as materialized (select q.id, q.name from redrive.queues q where q.is_sourced ${named}
    ), share as materialized (
      select least(${limit}::int8, greatest(${fewMin}, ${spread} * ${limit}::int8 / greatest(count(*), 1)) * ${4 ** Math.min(round, 8)}) as few
      from chosen
    ), probed as materialized (
      select p.*, s.few, c.name from share s cross join chosen c cross join lateral (
        select o.*, row_number() over () as k from (
          select i.* from (
            select f.ctid as place, f.archived_at as at, f.id from redrive.archive f
            where ${['f.queue_id = c.id', ...bounds].join(' and ')}
            order by f.archived_at desc, f.id desc limit ${limit}::int8
          ) i limit s.few
        ) o
      ) p
    ), edge as materialized (select p.at, p.id from probed p where p.k = p.few order by p.at desc, p.id desc limit 1
    ), looked as materialized (
      select p.place, p.at, p.id, p.name, row_number() over (order by p.at desc, p.id desc) as rank from probed p
      where not exists (select from edge) or (p.at, p.id) >= (select e.at, e.id from edge e)
      order by p.at desc, p.id desc limit ${limit}::int8
    ), hits as materialized (
      select l.place, l.name, l.rank from looked l cross join lateral (
        select from redrive.archive f where f.ctid = l.place and ${conditionsOf(filter, parameter).join(' and ')} offset 0
      ) j order by l.rank limit ${parameter(wanted)}::int8
    )
    select m.looked, m.last_at, m.last_id, m.is_end, h.rank, h.name as queue_name, f.archived_at, ${listedColumns}
    from (
        select count(*) as looked, max(l.at) filter (where l.is_last) as last_at,
          max(l.id) filter (where l.is_last) as last_id,
          count(*) = (select count(*) from probed) and not exists (select from edge) as is_end
        from (select l.*, l.rank = max(l.rank) over () as is_last from looked l) l
      ) m
      left join (
        hits h cross join lateral (select f.* from redrive.archive f where f.ctid = h.place offset 0) f
      ) on true
    order by h.rank`
  return { text, values }
}

/** Only the nearer bound at the side where the page begins: of two, the database may begin at the farther. */
function boundsOf(
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

/** Asked of each letter. What is no letter has no group. */
function conditionsOf(filter: ArchiveFilter, parameter: Parameter): readonly string[] {
  const { archived, sourceIds, queues, ...rest } = filter
  const conditions = ['f.group_id is not null', ...prefilter(rest, { order: 'updated_at' }, parameter)]
  const counted = readConditions(filter, true)
  conditions.push(...listConditions(counted, { group: 'f.group_id' }, parameter))
  if (hasGroupConditions(filter)) {
    const among = printConditions(counted, groupFieldColumns, parameter)
    conditions.push(`f.group_id = any (array(select g.id from redrive.groups g where ${among}))`)
  }
  if (sourceIds !== undefined) {
    conditions.push(`f.source_id = any (${printTexts(sourceIds, parameter)})`)
  }
  return conditions
}
