/** Lists the groups of letters, with numbers from the counts. */
import type { Instant } from '../../../core/instant.ts'
import {
  type GroupArrivals,
  type GroupFacts,
  type GroupSlug,
  type GroupsQuery,
  redrivesCounted,
} from '../../contract/letters.ts'
import { readConditions } from '../../shared/counted-filter.ts'
import { readNumber, readText, readTextOrNull } from '../../shared/row-values.ts'
import { prepareStatement, type Row, type Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s } from '../connection/encode-arrays.ts'
import {
  countColumns,
  groupColumns,
  groupFieldColumns,
  type Parameter,
  printConditions,
} from '../counts/count-conditions.ts'
import { usPerHour } from '../counts/letter-counts.ts'
import { stateNames } from '../items/rows.ts'

export async function listGroups(connections: Connections, query: GroupsQuery): Promise<GroupFacts[]> {
  return (await connections.read(...prepareListGroups(query))).map(decodeGroup)
}

/** A group that was created for a letter from the archive may have had no arrival since. */
const lastSeen = `lateral (
    select max(h.last_at) as at from redrive.group_hours h
    where h.queue_id = g.queue_id and h.group_id = g.id and h.hour = (
      select max(m.hour) from redrive.group_hours m where m.queue_id = g.queue_id and m.group_id = g.id))`

/** The letter that died last. One index lookup for each state and number of redrives that the group has. */
const newest = `lateral (
    select n.letter_id from (
        select c.state, c.redrives from redrive.letter_counts c where c.queue_id = g.queue_id and c.group_id = g.id
        group by c.state, c.redrives having sum(c.n) > 0
      ) cell cross join lateral (
        select f.died_at, f.id, coalesce(f.root_id, f.id) as letter_id from redrive.items_sourced f
        where f.group_id = g.id and f.state = cell.state and least(f.redrives, ${redrivesCounted}) = cell.redrives
        order by f.died_at desc, f.id desc limit 1
      ) n
    order by n.died_at desc, n.id desc limit 1)`

export function prepareListGroups(query: GroupsQuery): [Statement, unknown[]] {
  const { filter, after, countMax, isEmptyToo } = query
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const conditions = readConditions(filter)
  const beyond =
    after === undefined
      ? ''
      : `where (-p.count, p.id) > (-${parameter(after.count)}::int8, ${parameter(after.id)}::int8)`
  const printEmpty = () => `union all select g.id, 0, '' from redrive.groups g
    where ${printConditions(conditions, groupColumns, parameter)} and g.id not in (select t.group_id from totals t)`
  const text = `with totals as materialized (
      select s.group_id, sum(s.n)::int8 as count, string_agg(s.state || ':' || s.n, ',') as states from (
        select c.group_id, c.state, sum(c.n)::int8 as n from redrive.letter_counts c
        where ${printConditions(conditions, countColumns, parameter)}
        group by c.group_id, c.state having sum(c.n) <> 0) s
      group by s.group_id
    ), matching as (
      select t.group_id as id, t.count, t.states from totals t cross join lateral (
        select g.id from redrive.groups g
        where g.id = t.group_id and ${printConditions(conditions, groupFieldColumns, parameter)} offset 0) g
      ${isEmptyToo ? printEmpty() : ''}
    ), page as materialized (
      select p.* from matching p ${beyond} order by p.count desc, p.id limit ${parameter(countMax)}::int8
    )
    select g.*, q.name as queue, p.count, p.states, coalesce(s.at, g.first_seen_at) as last_seen_at, n.letter_id as sample_id
    from page p cross join lateral (select g.* from redrive.groups g where g.id = p.id offset 0) g
      cross join lateral (select q.name from redrive.queues q where q.id = g.queue_id offset 0) q
      left join ${lastSeen} s on true
      left join ${newest} n on true
    order by p.count desc, p.id`
  return [prepareStatement(text), values]
}

/** From a row of `prepareListGroups`. */
function decodeGroup(row: Row): GroupFacts {
  const lastSeenAt = readNumber(row, 'last_seen_at')
  return {
    id: readNumber(row, 'id'),
    queue: readText(row, 'queue'),
    fingerprint: readText(row, 'fingerprint'),
    origin: readText(row, 'origin'),
    errorCode: readText(row, 'reason'),
    slug: readText(row, 'slug'),
    errorClass: readText(row, 'error_class'),
    title: readText(row, 'title'),
    // The first letter of a group may have come from the archive. Then its death is not an arrival.
    firstSeenAt: Math.min(readNumber(row, 'first_seen_at'), lastSeenAt),
    lastSeenAt,
    sampleId: readTextOrNull(row, 'sample_id'),
    count: readNumber(row, 'count'),
    states: decodeStates(readText(row, 'states')),
  }
}

/** From a text such as `0:7,4:1`: the code of each state and its number of letters. */
function decodeStates(text: string): GroupFacts['states'] {
  const states: Record<string, number> = {}
  for (const pair of text.split(',')) {
    const [code, n] = pair.split(':')
    const name = stateNames[Number(code)]
    if (pair !== '' && name !== undefined) states[name] = Number(n)
  }
  return states
}

const slugs: Statement = {
  name: 'group-slugs',
  text: `select g.id, g.slug from unnest($1::int4[]) as w(id)
    cross join lateral (select f.id, f.slug from redrive.groups f where f.id = w.id offset 0) g`,
}

export async function groupSlugs(
  connections: Connections,
  groupIds: readonly number[],
): Promise<GroupSlug[]> {
  const ids = [...new Set(groupIds)]
  const rows = ids.length === 0 ? [] : await connections.read(slugs, [encodeInt4s(ids)])
  return rows.map((row) => ({ id: readNumber(row, 'id'), slug: readText(row, 'slug') }))
}

export const arrivals: Statement = {
  name: 'group-arrivals',
  text: `select h.group_id, h.hour, sum(h.n)::int8 as n
    from unnest($1::int4[]) as w(id)
      cross join lateral (select g.queue_id from redrive.groups g where g.id = w.id offset 0) g
      cross join lateral (
        select f.group_id, f.hour, f.n from redrive.group_hours f
        where f.queue_id = g.queue_id and f.group_id = w.id and f.hour >= $2 offset 0) h
    group by h.group_id, h.hour order by h.group_id, h.hour`,
}

export async function groupArrivals(
  connections: Connections,
  groupIds: readonly number[],
  since: Instant,
): Promise<GroupArrivals[]> {
  const ids = [...new Set(groupIds)]
  const rows = await connections.read(arrivals, [encodeInt4s(ids), Math.floor(since / usPerHour)])
  return rows.map((row) => ({
    groupId: readNumber(row, 'group_id'),
    hour: readNumber(row, 'hour') * usPerHour,
    count: readNumber(row, 'n'),
  }))
}
