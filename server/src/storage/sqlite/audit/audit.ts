import type { AuditEntry, AuditQuery, AuditRow, WriteAudit } from '../../contract/audit.ts'
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
  const rows = database.all(
    `select * from audit ${filter} order by id desc limit +?`,
    ...values,
    query.countMax,
  )
  return rows.map((row) => ({
    id: row.id as number,
    at: row.at as number,
    actor: row.actor as string,
    action: row.action as string,
    target: row.target as string,
    reason: row.reason as string,
    requestId: row.request_id as string,
    details: JSON.parse(row.details as string) as Record<string, unknown>,
  }))
}
