/** What is known of letters without looking at one: sums of their counts, and the groups. */
import { type Instant, usPerSecond } from '../../../core/instant.ts'
import type {
  CountedBy,
  CountedFilter,
  GroupArrivals,
  GroupFacts,
  GroupSlug,
  GroupsQuery,
  LetterCount,
  LetterCountsQuery,
} from '../../contract/letters.ts'
import { redrivesCounted } from '../../contract/letters.ts'
import { type Connections, prepared, type Row, type Statement } from '../connection/connections.ts'
import { int4s, texts } from '../connection/encode-arrays.ts'
import { stateNames } from '../items/rows.ts'
import {
  cellConditions,
  emptyGroupConditions,
  groupConditions,
  hasGroupConditions,
  isText,
  type Parameter,
} from './count-conditions.ts'
import { minutesPerHour, openStates } from './letter-counts.ts'

const usPerMinute = 60 * usPerSecond
const usPerHour = 60 * usPerMinute

const byColumns: Record<CountedBy, string> = {
  queue: 'q.name',
  state: 'c.state',
  group: 'c.group_id',
  origin: 'g.origin',
  reason: 'g.reason',
  slug: 'g.slug',
  errorClass: 'g.error_class',
  redrives: 'c.redrives',
}

export async function countLetters(
  connections: Connections,
  query: LetterCountsQuery,
): Promise<LetterCount[]> {
  const rows = await connections.read(...countStatement(query))
  return rows.map((row) => {
    const count: Record<string, unknown> = { count: row.n }
    for (const name of query.by) {
      const value = row[`by_${name.toLowerCase()}`]
      count[name] = name === 'state' ? stateNames[value as number] : value
    }
    return count as LetterCount
  })
}

/**
 * The slots are added up first: a group is then looked up once for each of its states. Where the sums over groups tell as
 * much, they are read instead.
 */
export function countStatement(query: LetterCountsQuery): [Statement, unknown[]] {
  const { filter, by } = query
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const table = tableFor(query)
  const columns = by.map((name) => (table === 'slug_sums' && name === 'slug' ? 'c.slug' : byColumns[name]))
  const isGrouped =
    table === 'letter_counts' && (hasGroupConditions(filter) || columns.some((name) => name.startsWith('g.')))
  const inner = [
    ...(by.includes('queue') || isGrouped ? ['queue_id'] : []),
    ...(isGrouped || by.includes('group') ? ['group_id'] : []),
    ...(columns.includes('c.slug') ? ['slug'] : []),
    ...(by.includes('state') ? ['state'] : []),
    ...(by.includes('redrives') ? ['redrives'] : []),
  ]
  const cells = `select ${inner.map((name) => `c.${name}, `).join('')}sum(c.n) as n from redrive.${table} c
    where ${cellConditions(filter, parameter)} ${table === 'slug_sums' ? slugCondition(filter, parameter) : ''}
    ${inner.length === 0 ? '' : `group by ${inner.map((name) => `c.${name}`).join(', ')}`}`
  const groups = () => `cross join lateral (
    select g.* from redrive.groups g where g.id = c.group_id and ${groupConditions(filter, parameter)} offset 0) g`
  const selected = by.map((name, index) => `${columns[index]} as by_${name.toLowerCase()}, `).join('')
  const text = `with c as materialized (${cells})
    select ${selected}sum(c.n)::int8 as n from c ${isGrouped ? groups() : ''}
      ${by.includes('queue') ? 'cross join lateral (select q.name from redrive.queues q where q.id = c.queue_id offset 0) q' : ''}
    ${columns.length === 0 ? '' : `group by ${columns.join(', ')}`} having sum(c.n) <> 0`
  return [prepared(text), values]
}

function tableFor({ filter, by }: LetterCountsQuery): 'letter_sums' | 'slug_sums' | 'letter_counts' {
  const { slugs, queues, redrives, ...others } = filter
  const isOfGroups = others.groupIds !== undefined || hasGroupConditions(others)
  const isBy = (...names: readonly CountedBy[]) => by.every((name) => names.includes(name))
  if (isOfGroups) return 'letter_counts'
  if (slugs === undefined && isBy('queue', 'state', 'redrives')) return 'letter_sums'
  const isAnywhere = queues === undefined && redrives === undefined
  return isAnywhere && isBy('slug', 'state') ? 'slug_sums' : 'letter_counts'
}

function slugCondition({ slugs }: CountedFilter, parameter: Parameter): string {
  return slugs === undefined ? '' : `and c.slug = any (${parameter(texts(slugs.filter(isText)))}::text[])`
}

/**
 * Whole hours and minutes from their counts; of the minute that `since` is in, the letters themselves. `$1`:
 * since, `$2`: that minute, `$3`: its hour, `$4`: the queues, or null for all. Planned each time: which
 * index is the right one shows only when there are letters.
 */
export const openSince: Statement = {
  text: `select coalesce(sum(
      coalesce((select sum(o.n) from redrive.open_letters o
        where o.queue_id = q.id and o.span = ${minutesPerHour} and o.number > $3::int4), 0)
      + coalesce((select sum(o.n) from redrive.open_letters o where o.queue_id = q.id and o.span = 1
          and o.number > $2::int4 and o.number < ($3::int4 + 1) * ${minutesPerHour}), 0)
      + (select coalesce(sum(p.n), 0) from unnest(array[${openStates.join(', ')}]) as s(state) cross join lateral (
          select count(*) as n from redrive.items_sourced f
          where f.queue_id = q.id and f.state = s.state and f.died_at >= $1::int8
            and f.died_at < ($2::int8 + 1) * ${usPerMinute} and f.group_id is not null offset 0) p)
    ), 0)::int8 as n
    from redrive.queues q where q.is_sourced and ($4::text[] is null or q.name = any ($4::text[]))`,
}

export async function countOpenSince(
  connections: Connections,
  since: Instant,
  queues: readonly string[] | undefined,
): Promise<number> {
  const minute = Math.floor(since / usPerMinute)
  const names = queues === undefined ? null : texts(queues.filter(isText))
  const values = [since, minute, Math.floor(minute / minutesPerHour), names]
  const [row] = await connections.read(openSince, values)
  return row?.n as number
}

export async function listGroups(connections: Connections, query: GroupsQuery): Promise<GroupFacts[]> {
  return (await connections.read(...groupsStatement(query))).map(groupOf)
}

/** When it last got a letter. One that was made for a letter from the archive has got none since. */
const lastSeen = `lateral (
    select max(h.last_at) as at from redrive.group_hours h
    where h.queue_id = g.queue_id and h.group_id = g.id and h.hour = (
      select max(m.hour) from redrive.group_hours m where m.queue_id = g.queue_id and m.group_id = g.id))`

/** The newest letter: the newest of each state and number of redrives that the group has. */
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

export function groupsStatement(query: GroupsQuery): [Statement, unknown[]] {
  const { filter, after, countMax, isEmptyToo } = query
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const beyond =
    after === undefined
      ? ''
      : `where (-p.count, p.id) > (-${parameter(after.count)}::int8, ${parameter(after.id)}::int8)`
  const empty = () => `union all select g.id, 0, '' from redrive.groups g
    where ${emptyGroupConditions(filter, parameter)} and g.id not in (select t.group_id from totals t)`
  const text = `with totals as materialized (
      select s.group_id, sum(s.n)::int8 as count, string_agg(s.state || ':' || s.n, ',') as states from (
        select c.group_id, c.state, sum(c.n)::int8 as n from redrive.letter_counts c where ${cellConditions(filter, parameter)}
        group by c.group_id, c.state having sum(c.n) <> 0) s
      group by s.group_id
    ), matching as (
      select t.group_id as id, t.count, t.states from totals t cross join lateral (
        select g.id from redrive.groups g where g.id = t.group_id and ${groupConditions(filter, parameter)} offset 0) g
      ${isEmptyToo ? empty() : ''}
    ), page as materialized (
      select p.* from matching p ${beyond} order by p.count desc, p.id limit ${parameter(countMax)}::int8
    )
    select g.*, q.name as queue, p.count, p.states, coalesce(s.at, g.first_seen_at) as last_seen_at, n.letter_id as sample_id
    from page p cross join lateral (select g.* from redrive.groups g where g.id = p.id offset 0) g
      cross join lateral (select q.name from redrive.queues q where q.id = g.queue_id offset 0) q
      left join ${lastSeen} s on true
      left join ${newest} n on true
    order by p.count desc, p.id`
  return [prepared(text), values]
}

function groupOf(row: Row): GroupFacts {
  const states: Record<string, number> = {}
  for (const pair of (row.states as string).split(',')) {
    const [state, n] = pair.split(':')
    const name = stateNames[Number(state)]
    if (pair !== '' && name !== undefined) states[name] = Number(n)
  }
  return {
    id: row.id as number,
    queue: row.queue as string,
    fingerprint: row.fingerprint as string,
    origin: row.origin as string,
    reason: row.reason as string,
    slug: row.slug as string,
    errorClass: row.error_class as string,
    title: row.title as string,
    // The letter that a group was made for may have been there already, and is not counted then.
    firstSeenAt: Math.min(row.first_seen_at as number, row.last_seen_at as number),
    lastSeenAt: row.last_seen_at as number,
    sampleId: row.sample_id as string | null,
    count: row.count as number,
    states,
  }
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
  const rows = ids.length === 0 ? [] : await connections.read(slugs, [int4s(ids)])
  return rows.map((row) => ({ id: row.id as number, slug: row.slug as string }))
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
  const rows = await connections.read(arrivals, [int4s(ids), Math.floor(since / usPerHour)])
  return rows.map((row) => ({
    groupId: row.group_id as number,
    hour: (row.hour as number) * usPerHour,
    count: row.n as number,
  }))
}
