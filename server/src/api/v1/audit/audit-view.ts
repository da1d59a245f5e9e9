import { type Static, Type } from 'typebox'
import type { AuditRow } from '../../../storage/contract/audit.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { Time } from '../letters/letter-view.ts'
import { viewDetails } from './audit-details.ts'

export const AuditView = Type.Object({
  id: Type.Integer(),
  at: Time,
  actor: Type.String(),
  action: Type.String(),
  target: Type.String({ description: 'What it was done to: a letter, a queue, a campaign…' }),
  reason: Type.String(),
  request_id: Type.String(),
  details: Type.Unknown(),
})

export function viewAudit(row: AuditRow): Static<typeof AuditView> {
  const { id, at, actor, action, target, reason, requestId } = row
  const details = viewDetails(row)
  return { id, at: formatInstant(at), actor, action, target, reason, request_id: requestId, details }
}
