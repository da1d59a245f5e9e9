/** Numbers of letters, read from their counts. The cost depends on the number of groups, not of letters. */

import { isStorableText } from '../../../core/text/storable-text.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { CountedBy, LetterCount, LetterCountsQuery, OldestOpen } from '../../contract/letters.ts'
import {
  type CountCondition,
  hasGroupConditions,
  readConditions,
} from '../../shared/letters/counted-filter.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { prepareStatement, type Row, type Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeTexts } from '../connection/encode-arrays.ts'
import { resolveGroups } from '../groups/resolve-groups.ts'
import { stateNames } from '../items/rows.ts'
import {
  type ConditionColumns,
  countColumns,
  groupFieldColumns,
  type Parameter,
  printConditions,
} from './count-conditions.ts'
import { minutesPerHour, openStates, usPerMinute } from './letter-counts.ts'

const byColumns: Record<CountedBy, string> = {
  queue: 'q.name',
  state: 'c.state',
  group: 'coalesce(g.merged_into, g.id)',
  origin: 'g.origin',
  errorCode: 'g.reason',
  slug: 'g.slug',
  errorClass: 'g.error_class',
  retryCount: 'c.redrives',
}

export async function countLetters(
  connections: Connections,
  query: LetterCountsQuery,
): Promise<LetterCount[]> {
  const filter = await resolveGroups({ query: connections.read.bind(connections) }, query.filter)
  const rows = await connections.read(...prepareCount({ ...query, filter }))
  return rows.map((row) => decodeCount(row, query.by))
}

/** From a row of `n`, and a column `by_…` for each of `by`. */
function decodeCount(row: Row, by: readonly CountedBy[]): LetterCount {
  const decode = (name: CountedBy): string | number | undefined => {
    const column = nameByColumn(name)
    switch (name) {
      case 'state':
        return stateNames[readNumber(row, column)]
      case 'group':
      case 'retryCount':
        return readNumber(row, column)
      default:
        return readText(row, column)
    }
  }
  return { count: readNumber(row, 'n'), ...Object.fromEntries(by.map((name) => [name, decode(name)])) }
}

function nameByColumn(name: CountedBy): string {
  return `by_${name.toLowerCase()}`
}

/**
 * Adds up the slots first, so that a group is looked up once for each of its states. Reads the sums over
 * groups instead of the counts if they answer the query.
 */
export function prepareCount(query: LetterCountsQuery): [Statement, unknown[]] {
  const { filter, by } = query
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const table = chooseTable(query)
  const isBySlug = table === 'slug_sums'
  const columns = by.map((name) => (isBySlug && name === 'slug' ? 'c.slug' : byColumns[name]))
  const isGrouped =
    table === 'letter_counts' && (hasGroupConditions(filter) || columns.some((name) => name.includes('g.')))
  const conditions = readConditions(filter)
  const inner = listInnerColumns(by, isGrouped, columns.includes('c.slug'))
  const conditionColumns: ConditionColumns = isBySlug ? { ...countColumns, slug: 'c.slug' } : countColumns
  const counts = `select ${inner.map((name) => `c.${name}, `).join('')}sum(c.n) as n from redrive.${table} c
    where ${printConditions(conditions, conditionColumns, parameter)}
    ${inner.length === 0 ? '' : `group by ${inner.map((name) => `c.${name}`).join(', ')}`}`
  const selected = by.map((name, index) => `${columns[index]} as ${nameByColumn(name)}, `).join('')
  const text = `with c as materialized (${counts})
    select ${selected}sum(c.n)::int8 as n from c ${isGrouped ? joinGroups(conditions, parameter) : ''}
      ${by.includes('queue') ? joinQueues : ''}
    ${columns.length === 0 ? '' : `group by ${columns.join(', ')}`} having sum(c.n) <> 0`
  return [prepareStatement(text), values]
}

/** The columns by which the slots are added up. */
function listInnerColumns(by: readonly CountedBy[], isGrouped: boolean, hasSlug: boolean): string[] {
  return [
    ...(by.includes('queue') || isGrouped ? ['queue_id'] : []),
    ...(isGrouped || by.includes('group') ? ['group_id'] : []),
    ...(hasSlug ? ['slug'] : []),
    ...(by.includes('state') ? ['state'] : []),
    ...(by.includes('retryCount') ? ['redrives'] : []),
  ]
}

const joinQueues =
  'cross join lateral (select q.name from redrive.queues q where q.id = c.queue_id offset 0) q'

function joinGroups(conditions: readonly CountCondition[], parameter: Parameter): string {
  const where = printConditions(conditions, groupFieldColumns, parameter)
  return `cross join lateral (
    select g.* from redrive.groups g where g.id = c.group_id and ${where} offset 0) g`
}

function chooseTable({ filter, by }: LetterCountsQuery): 'letter_sums' | 'slug_sums' | 'letter_counts' {
  const { slugs, queues, namespaces, retryCount, ...others } = filter
  const needsGroups = others.groupIds !== undefined || hasGroupConditions(others)
  const isOnlyBy = (...names: readonly CountedBy[]) => by.every((name) => names.includes(name))
  if (needsGroups) return 'letter_counts'
  if (slugs === undefined && isOnlyBy('queue', 'state', 'retryCount')) return 'letter_sums'
  const isForAllQueues = queues === undefined && namespaces === undefined && retryCount === undefined
  return isForAllQueues && isOnlyBy('slug', 'state') ? 'slug_sums' : 'letter_counts'
}

/**
 * Reads whole hours and minutes from their counts, and counts the letters of the minute in which `since`
 * lies. `$1`: since, `$2`: that minute, `$3`: its hour, `$4`: the names of the queues, or null for all. The
 * statement is planned each time, because the right index depends on whether there are letters.
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
  const names = queues === undefined ? null : encodeTexts(queues.filter(isStorableText))
  const values = [since, minute, Math.floor(minute / minutesPerHour), names]
  const [row = {}] = await connections.read(openSince, values)
  return readNumber(row, 'n')
}

export const oldestOpen: Statement = {
  name: 'read-oldest-open',
  text: `select q.name, o.died_at from redrive.queues q cross join lateral (
      select min(f.died_at) as died_at from unnest(array[${openStates.join(', ')}]) as s(state)
        cross join lateral (
          select i.died_at from redrive.items_sourced i
          where i.queue_id = q.id and i.state = s.state and i.died_at is not null and i.group_id is not null
          order by i.died_at limit 1) f) o
    where q.name = any ($1::text[]) and o.died_at is not null`,
}

/** Reads the first entry of the index for each queue and state. */
export async function readOldestOpen(
  connections: Connections,
  queues: readonly string[],
): Promise<OldestOpen[]> {
  const rows = await connections.read(oldestOpen, [encodeTexts(queues.filter(isStorableText))])
  return rows.map((row) => ({ queue: readText(row, 'name'), diedAt: readNumber(row, 'died_at') }))
}
