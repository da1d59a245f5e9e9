import type { AuditEntry, AuditQuery, AuditRow, WriteAudit } from '../../contract/audit.ts'
import { toAuditRow } from '../../shared/audit-rows.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { int8s, texts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

const insertAuditRows: Statement = {
  name: 'insert-audit',
  text: `insert into redrive.audit (at, actor, action, target, reason, request_id, details)
    select * from unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])`,
}

export async function writeAudit(
  transaction: Transaction,
  commands: readonly WriteAudit[],
): Promise<undefined[]> {
  await insertAudit(
    transaction.connection,
    commands.flatMap((command) => command.entries),
  )
  return commands.map(() => undefined)
}

export async function insertAudit(connection: Connection, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length === 0) return
  await connection.query(insertAuditRows, [
    int8s(entries.map((entry) => entry.at)),
    texts(entries.map((entry) => entry.actor)),
    texts(entries.map((entry) => entry.action)),
    texts(entries.map((entry) => entry.target)),
    texts(entries.map((entry) => entry.reason)),
    texts(entries.map((entry) => entry.requestId)),
    texts(entries.map((entry) => JSON.stringify(entry.details))),
  ])
}

export async function listAudit(connections: Connections, query: AuditQuery): Promise<AuditRow[]> {
  const conditions: string[] = []
  const values: unknown[] = [query.countMax]
  const where = (condition: string, value: unknown) => {
    if (value === undefined) return
    values.push(value)
    conditions.push(`${condition} $${values.length}`)
  }
  where('id <', query.beforeId)
  where('target =', query.target)
  where('action =', query.action)
  const { times } = query
  where('at >=', times?.after)
  if (times?.position === undefined) where('at <', times?.before)
  else {
    values.push(times.position.at, times.position.id)
    conditions.push(`(at, id) < ($${values.length - 1}::int8, $${values.length}::int8)`)
  }
  const filter = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const order = times === undefined ? 'id desc' : 'at desc, id desc'
  const text = `select * from redrive.audit ${filter} order by ${order} limit $1`
  return (await connections.read({ text }, values)).map(toAuditRow)
}
