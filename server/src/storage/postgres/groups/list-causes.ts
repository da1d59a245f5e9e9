/** Lists causes: groups of all queues with the same key. Their numbers are sums of the counts. */
import { isStorableText } from '../../../core/text/storable-text.ts'
import type { CauseCount, CausesQuery } from '../../contract/groups.ts'
import { readConditions } from '../../shared/letters/counted-filter.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { prepareStatement, type Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import {
  countColumns,
  groupFieldColumns,
  type Parameter,
  printConditions,
} from '../counts/count-conditions.ts'
import { resolveGroups } from './resolve-groups.ts'

export async function listCauses(connections: Connections, query: CausesQuery): Promise<CauseCount[]> {
  const reader = { query: connections.read.bind(connections) }
  const filter = await resolveGroups(reader, query.filter)
  const rows = await connections.read(...causesStatement({ ...query, filter }))
  return rows.map((row) => ({ causeKey: readText(row, 'cause_key'), count: readNumber(row, 'count') }))
}

/** Adds up the slots first, so that a group is looked up once. */
export function causesStatement({ filter, after, countMax }: CausesQuery): [Statement, unknown[]] {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const conditions = readConditions(filter)
  const text = `with totals as materialized (
      select c.group_id, sum(c.n)::int8 as n from redrive.letter_counts c
      where ${printConditions(conditions, countColumns, parameter)}
      group by c.group_id having sum(c.n) <> 0
    ), causes as (
      select g.cause_key, sum(t.n)::int8 as count from totals t cross join lateral (
        select g.cause_key from redrive.groups g
        where g.id = t.group_id and ${printConditions(conditions, groupFieldColumns, parameter)} offset 0) g
      group by g.cause_key)
    select k.cause_key, k.count from causes k
    ${after === undefined ? '' : `where (-k.count, k.cause_key) > (-${parameter(after.count)}::int8, ${parameter(after.causeKey)}::text collate "C")`}
    order by k.count desc, k.cause_key limit ${parameter(countMax)}::int8`
  return [prepareStatement(text), values]
}

export const findKey: Statement = {
  name: 'find-cause-key',
  text: `select g.cause_key from (
      select coalesce((select a.merged_into from redrive.cause_aliases a where a.cause_key = $1), $1) as cause_key) k
    cross join lateral (
      select f.cause_key from redrive.groups f where f.cause_key = k.cause_key limit 1) g`,
}

/** The key by which the groups of a cause are found now; null: there is no such cause. */
export async function findCauseKey(connections: Connections, causeKey: string): Promise<string | null> {
  if (!isStorableText(causeKey)) return null
  const [row] = await connections.read(findKey, [causeKey])
  return row === undefined ? null : readText(row, 'cause_key')
}
