import type { Clock } from '../core/instant.ts'
import type { Trace } from '../engine/engine.ts'
import type { AuditEntry, WriteAudit } from '../storage/storage.ts'

/** Who acts when nobody does: what a person wrote down before as a policy. */
export const policyTrace: Trace = { actor: 'policy', reason: '', requestId: '' }

export type Action =
  | 'letters.capture'
  | 'letter.redrive'
  | 'letter.edit'
  | 'letter.discard'
  | 'letter.restore'
  | 'letters.auto-redrive'
  | 'letters.archive'
  | 'letters.archived'
  | 'letters.purge-archive'
  | 'letters.purged-archive'
  | 'campaign.create'
  | 'campaign.pause'
  | 'campaign.resume'
  | 'campaign.cancel'
  | 'campaign.halt'

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
  // One row per letter: its trail is found by its id, however many went with it.
  return {
    op: 'audit',
    entries: targets.map((target) => ({ at, actor, action, target, reason, requestId, details })),
  }
}
