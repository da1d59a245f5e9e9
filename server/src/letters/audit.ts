import type { Clock } from '../core/time/instant.ts'
import type { Attribution } from '../engine/engine.ts'
import type { AuditContext, AuditEntry, WriteAudit } from '../storage/contract/audit.ts'

/** The actor of automatic actions: a policy that a person configured. */
export const policyAttribution: Attribution = { actor: 'policy', reason: '', requestId: '' }

export type Action =
  | 'letters.capture'
  | 'letter.redrive'
  | 'letter.cancel-redrive'
  | 'letter.edit'
  | 'letter.discard'
  | 'letter.exhaust'
  | 'letter.restore'
  | 'letters.archive'
  | 'letters.purge-archive'
  | 'group.merge'
  | 'group.pin-title'
  | 'group.split'
  | 'group.acknowledge'
  | 'group.mute'
  | 'group.resolve'
  | 'group.reopen'
  | 'group.regroup'
  | 'group.cancel-job'
  | 'cause.merge'
  | 'cause.pin-title'
  | 'campaign.create'
  | 'campaign.freeze'
  | 'campaign.adjust'
  | 'campaign.pause'
  | 'campaign.resume'
  | 'campaign.cancel'
  | 'campaign.halt'

/** For commands whose audit rows the store writes, because only the store knows which letters changed. */
export function createAuditContext(
  clock: Clock,
  attribution: Attribution,
  action: Action,
  details: AuditEntry['details'],
): AuditContext {
  return { at: clock.now(), ...attribution, action, details }
}

/** An audit command for the same write as the change, so that both are committed or neither. */
export function createAuditCommand(
  clock: Clock,
  attribution: Attribution,
  action: Action,
  targets: readonly string[],
  details: AuditEntry['details'],
): WriteAudit {
  const at = clock.now()
  return {
    op: 'audit',
    entries: targets.map((target) => ({ at, ...attribution, action, target, details })),
  }
}

/** `namespace` is empty for a target that belongs to several namespaces. */
export function inNamespace(attribution: Attribution, namespace: string): Attribution {
  return namespace === '' ? attribution : { ...attribution, namespace }
}
