import type { AccessQuery, AccessRecords, AccessState } from '../../contract/access.ts'
import { accessTables, readConditions, toAccessState } from '../../shared/rows/access-rows.ts'
import type { Database } from '../connection/database.ts'

export function readAccessState(database: Database): AccessState {
  return toAccessState(database.get('select * from access_state') ?? {})
}

export function listAccess<const Q extends AccessQuery>(
  database: Database,
  query: Q,
): AccessRecords[Q['of']][] {
  const { table, order, decode } = accessTables[query.of]
  const conditions = readConditions(query)
  const filter = conditions.map(({ column }) => ` and ${column} = ?`).join('')
  const sql = `select * from ${table} where ${order} >= ?${filter} order by ${order} limit +?`
  const values = conditions.map(({ value }) => value)
  return database
    .all(sql, query.from ?? '', ...values, query.countMax)
    .map(decode) as AccessRecords[Q['of']][]
}
