import type { AuditRow } from '../contract/audit.ts'
import { type DatabaseRow, readJson, readNumber, readText } from './row-values.ts'

export function toAuditRow(row: DatabaseRow): AuditRow {
  return {
    id: readNumber(row, 'id'),
    at: readNumber(row, 'at'),
    actor: readText(row, 'actor'),
    action: readText(row, 'action'),
    target: readText(row, 'target'),
    reason: readText(row, 'reason'),
    requestId: readText(row, 'request_id'),
    details: readJson<AuditRow['details']>(row, 'details'),
  }
}
