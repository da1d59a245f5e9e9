/** Lists causes: groups of all queues with the same key. Their numbers are sums of the counts. */
import type { CauseCount, CausesQuery } from '../../contract/groups.ts'
import { readConditions } from '../../shared/letters/counted-filter.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Bound, Database } from '../connection/database.ts'
import {
  countGroupColumns,
  countStateColumns,
  groupFieldColumns,
  printConditions,
} from '../counts/count-conditions.ts'
import { resolveGroups } from './resolve-groups.ts'

export function listCauses(database: Database, query: CausesQuery): CauseCount[] {
  const { after, countMax } = query
  const columns = { ...countGroupColumns, ...countStateColumns, ...groupFieldColumns }
  const conditions = readConditions(resolveGroups(database, query.filter))
  const { where, values } = printConditions(database, conditions, columns)
  const bounds: Bound[] = after === undefined ? [] : [after.count, after.count, after.causeKey]
  const rows = database.readArrays(
    `select g.cause_key, sum(c.n) from letter_counts c join groups g on g.id = c.group_id
     where ${where} group by g.cause_key having sum(c.n) <> 0
       ${after === undefined ? '' : 'and (sum(c.n) < ? or (sum(c.n) = ? and g.cause_key > ?))'}
     order by 2 desc, 1 limit +?`,
    ...[...values, ...bounds, countMax],
  )
  return rows.map((row) => ({ causeKey: readText(row, 0), count: readNumber(row, 1) }))
}

/** The key by which the groups of a cause are found now; null: there is no such cause. */
export function findCauseKey(database: Database, causeKey: string): string | null {
  const merged = database.getArray('select merged_into from cause_aliases where cause_key = ?', causeKey)
  const key = merged === undefined ? causeKey : readText(merged, 0)
  return database.getArray('select 1 from groups where cause_key = ? limit 1', key) === undefined ? null : key
}
