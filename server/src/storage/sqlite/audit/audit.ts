import type { AuditEntry, AuditQuery, AuditRow, WriteAudit } from '../../contract/audit.ts'
import { toAuditRow } from '../../shared/audit-rows.ts'
import type { Bound, Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

export function writeAudit({ database }: Transaction, command: WriteAudit): undefined {
  insertAudit(database, command.entries)
}

export function insertAudit(database: Database, entries: readonly AuditEntry[]): void {
  for (const entry of entries) {
    database.run(
      `insert into audit (at, actor, action, target, reason, request_id, details) values (?, ?, ?, ?, ?, ?, ?)`,
      entry.at,
      entry.actor,
      entry.action,
      entry.target,
      entry.reason,
      entry.requestId,
      JSON.stringify(entry.details),
    )
  }
}

export function listAudit(database: Database, query: AuditQuery): AuditRow[] {
  const conditions: string[] = []
  const values: Bound[] = []
  const where = (condition: string, value: Bound | undefined) => {
    if (value === undefined) return
    conditions.push(condition)
    values.push(value)
  }
  where('id < ?', query.beforeId)
  where('target = ?', query.target)
  where('action = ?', query.action)
  const { times } = query
  where('at >= ?', times?.after)
  if (times?.position === undefined) where('at < ?', times?.before)
  else {
    conditions.push('(at, id) < (?, ?)')
    values.push(times.position.at, times.position.id)
  }
  const filter = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const order = times === undefined ? 'id desc' : 'at desc, id desc'
  const sql = `select * from audit ${filter} order by ${order} limit +?`
  return database.all(sql, ...values, query.countMax).map(toAuditRow)
}
