/** Lists the groups of letters, with numbers from the counts. */
import { openLifecycle } from '../../../core/dead-letters/group-lifecycle.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { GroupLabel } from '../../contract/groups.ts'
import {
  type GroupArrivals,
  type GroupFacts,
  type GroupsQuery,
  redrivesCounted,
} from '../../contract/letters.ts'
import { readConditions } from '../../shared/letters/counted-filter.ts'
import { toGroupLifecycle } from '../../shared/rows/lifecycle-rows.ts'
import { readJson, readNumber, readText, readTextOrNull } from '../../shared/rows/row-values.ts'
import { prepareStatement, type Row, type Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import {
  countColumns,
  groupColumns,
  groupFieldColumns,
  type Parameter,
  printConditions,
} from '../counts/count-conditions.ts'
import { usPerHour } from '../counts/letter-counts.ts'
import { resolveGroups } from '../groups/resolve-groups.ts'
import { stateNames } from '../items/rows.ts'

export async function listGroups(connections: Connections, query: GroupsQuery): Promise<GroupFacts[]> {
  const filter = await resolveGroups({ query: connections.read.bind(connections) }, query.filter)
  return (await connections.read(...prepareListGroups({ ...query, filter }))).map(decodeGroup)
}

/** The group and those that are shown as it: their ids, and when the first of them was first seen. */
const members = `lateral (
    select array_agg(m.id order by m.id) as ids, min(m.first_seen_at) as first_seen_at from (
        select g.id, g.first_seen_at
        union all select f.id, f.first_seen_at from redrive.groups f
        where f.merged_into = g.id and f.merged_into is not null
      ) m)`

/** A group that was created for a letter from the archive may have had no arrival since. */
const lastSeen = `lateral (
    select max(s.at) as at from unnest(m.ids) as w(id) cross join lateral (
      select max(h.last_at) as at from redrive.group_hours h
      where h.queue_id = g.queue_id and h.group_id = w.id and h.hour = (
        select max(n.hour) from redrive.group_hours n where n.queue_id = g.queue_id and n.group_id = w.id)) s)`

/** The letter that died last. One index lookup for each state and number of redrives that a group has. */
const newest = `lateral (
    select n.letter_id from (
        select c.group_id, c.state, c.redrives from redrive.letter_counts c
        where c.queue_id = g.queue_id and c.group_id = any (m.ids)
        group by c.group_id, c.state, c.redrives having sum(c.n) > 0
      ) cell cross join lateral (
        select f.died_at, f.id, coalesce(f.root_id, f.id) as letter_id from redrive.items_sourced f
        where f.group_id = cell.group_id and f.state = cell.state
          and least(f.redrives, ${redrivesCounted}) = cell.redrives
        order by f.died_at desc, f.id desc limit 1
      ) n
    order by n.died_at desc, n.id desc limit 1)`

export function prepareListGroups(query: GroupsQuery): [Statement, unknown[]] {
  const { filter, after, countMax, isEmptyToo, lifecycle } = query
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const conditions = readConditions(filter)
  const beyond =
    after === undefined
      ? ''
      : `where (-p.count, p.id) > (-${parameter(after.count)}::int8, ${parameter(after.id)}::int8)`
  const inState =
    lifecycle === undefined
      ? ''
      : `${beyond === '' ? 'where' : 'and'} coalesce((
          select case when l.state = 'muted' and l.muted_until <= ${parameter(lifecycle.now)}::int8 then 'open'
            else l.state end from redrive.group_lifecycles l where l.group_id = p.id), 'open')
          = any (${parameter(encodeTexts(lifecycle.states))}::text[])`
  const printEmpty =
    () => `union all select distinct coalesce(g.merged_into, g.id), 0, '' from redrive.groups g
    where ${printConditions(conditions, groupColumns, parameter)}
      and coalesce(g.merged_into, g.id) not in (select t.id from totals t)`
  const text = `with counted as materialized (
      select c.group_id, c.state, sum(c.n)::int8 as n from redrive.letter_counts c
      where ${printConditions(conditions, countColumns, parameter)}
      group by c.group_id, c.state having sum(c.n) <> 0
    ), shown as (
      select coalesce(g.merged_into, g.id) as id, c.state, sum(c.n)::int8 as n from counted c cross join lateral (
        select g.id, g.merged_into from redrive.groups g
        where g.id = c.group_id and ${printConditions(conditions, groupFieldColumns, parameter)} offset 0) g
      group by coalesce(g.merged_into, g.id), c.state
    ), totals as materialized (
      select s.id, sum(s.n)::int8 as count, string_agg(s.state || ':' || s.n, ',') as states from shown s
      group by s.id
    ), matching as (
      select t.id, t.count, t.states from totals t ${isEmptyToo ? printEmpty() : ''}
    ), page as materialized (
      select p.* from matching p ${beyond} ${inState} order by p.count desc, p.id limit ${parameter(countMax)}::int8
    )
    select g.*, q.name as queue, p.count, p.states, n.letter_id as sample_id, array_to_json(m.ids)::text as member_ids,
      m.first_seen_at as seen_from, coalesce(s.at, m.first_seen_at) as last_seen_at,
      l.state, l.changed_at, l.muted_until, l.actor, l.note
    from page p cross join lateral (select g.* from redrive.groups g where g.id = p.id offset 0) g
      cross join lateral (select q.name from redrive.queues q where q.id = g.queue_id offset 0) q
      cross join ${members} m
      left join ${lastSeen} s on true
      left join ${newest} n on true
      left join redrive.group_lifecycles l on l.group_id = g.id
    order by p.count desc, p.id`
  return [prepareStatement(text), values]
}

/** From a row of `prepareListGroups`. */
function decodeGroup(row: Row): GroupFacts {
  const lastSeenAt = readNumber(row, 'last_seen_at')
  const id = readNumber(row, 'id')
  const pinned = readTextOrNull(row, 'pinned_title')
  return {
    id,
    queue: readText(row, 'queue'),
    fingerprint: readText(row, 'fingerprint'),
    causeKey: readText(row, 'cause_key'),
    origin: readText(row, 'origin'),
    errorCode: readText(row, 'reason'),
    slug: readText(row, 'slug'),
    errorClass: readText(row, 'error_class'),
    title: pinned ?? readText(row, 'title'),
    isTitlePinned: pinned !== null,
    mergedIds: readJson<number[]>(row, 'member_ids').filter((member) => member !== id),
    // The first letter of a group may have come from the archive. Then its death is not an arrival.
    firstSeenAt: Math.min(readNumber(row, 'seen_from'), lastSeenAt),
    lastSeenAt,
    sampleId: readTextOrNull(row, 'sample_id'),
    count: readNumber(row, 'count'),
    states: decodeStates(readText(row, 'states')),
    lifecycle: readTextOrNull(row, 'state') === null ? openLifecycle : toGroupLifecycle(row),
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

const labels: Statement = {
  name: 'group-labels',
  text: `select g.id, g.slug, coalesce(g.merged_into, g.id) as shown_as from unnest($1::int4[]) as w(id)
    cross join lateral (select f.id, f.slug, f.merged_into from redrive.groups f where f.id = w.id offset 0) g`,
}

export async function readGroupLabels(
  connections: Connections,
  groupIds: readonly number[],
): Promise<GroupLabel[]> {
  const ids = [...new Set(groupIds)]
  const rows = ids.length === 0 ? [] : await connections.read(labels, [encodeInt4s(ids)])
  return rows.map((row) => ({
    id: readNumber(row, 'id'),
    slug: readText(row, 'slug'),
    shownAs: readNumber(row, 'shown_as'),
  }))
}

/** With the groups that are shown as these. */
export const arrivals: Statement = {
  name: 'group-arrivals',
  text: `select w.id as group_id, h.hour, sum(h.n)::int8 as n
    from unnest($1::int4[]) as w(id)
      cross join lateral (
        select coalesce(r.merged_into, r.id) as id, r.queue_id from redrive.groups r where r.id = w.id offset 0) r
      cross join lateral (
        select r.id, r.queue_id union all select f.id, f.queue_id from redrive.groups f
        where f.merged_into = r.id and f.merged_into is not null) g
      cross join lateral (
        select f.hour, f.n from redrive.group_hours f
        where f.queue_id = g.queue_id and f.group_id = g.id and f.hour >= $2 offset 0) h
    group by w.id, h.hour order by w.id, h.hour`,
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
