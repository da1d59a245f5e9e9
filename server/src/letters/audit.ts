import type { Clock } from '../core/instant.ts'
import type { Trace } from '../engine/engine.ts'
import type { AuditContext, AuditEntry, WriteAudit } from '../storage/contract/audit.ts'

/** Who acts when nobody does: what a person wrote down before as a policy. */
export const policyTrace: Trace = { actor: 'policy', reason: '', requestId: '' }

export type Action =
  | 'letters.capture'
  | 'letter.redrive'
  | 'letter.edit'
  | 'letter.discard'
  | 'letter.exhaust'
  | 'letter.restore'
  | 'letters.archive'
  | 'letters.purge-archive'
  | 'campaign.create'
  | 'campaign.freeze'
  | 'campaign.adjust'
  | 'campaign.pause'
  | 'campaign.resume'
  | 'campaign.cancel'
  | 'campaign.halt'

/** For a command whose rows the store writes, from what really happened. */
export function actOf(
  clock: Clock,
  { actor, reason, requestId }: Trace,
  action: Action,
  details: AuditEntry['details'],
): AuditContext {
  return { at: clock.now(), actor, action, reason, requestId, details }
}

/** For the same write as the change, so that there is neither without the other. */
export function auditOf(
  clock: Clock,
  trace: Trace,
  action: Action,
  targets: readonly string[],
  details: AuditEntry['details'],
): WriteAudit {
  const { actor, reason, requestId } = trace
  const at = clock.now()
  return {
    op: 'audit',
    entries: targets.map((target) => ({ at, actor, action, target, reason, requestId, details })),
  }
}
