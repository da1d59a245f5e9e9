import type { AccessQuery, AccessRecords, AccessState } from '../../contract/access.ts'
import { accessTables, readConditions, toAccessState } from '../../shared/rows/access-rows.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'

const readState: Statement = { name: 'read-access-state', text: 'select * from redrive.access_state' }

export async function readAccessState(connections: Connections): Promise<AccessState> {
  const [row] = await connections.read(readState, [])
  return toAccessState(row ?? {})
}

export async function listAccess<const Q extends AccessQuery>(
  connections: Connections,
  query: Q,
): Promise<AccessRecords[Q['of']][]> {
  const { table, order, decode } = accessTables[query.of]
  const conditions = readConditions(query)
  const filter = conditions.map(({ column }, index) => ` and ${column} = $${index + 3}`).join('')
  const text = `select * from redrive.${table} where ${order} >= $1${filter} order by ${order} limit $2`
  const values = [query.from ?? '', query.countMax, ...conditions.map(({ value }) => value)]
  return (await connections.read({ text }, values)).map(decode) as AccessRecords[Q['of']][]
}
