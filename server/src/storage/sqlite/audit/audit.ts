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
  const filter = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const sql = `select * from audit ${filter} order by id desc limit +?`
  return database.all(sql, ...values, query.countMax).map(toAuditRow)
}
