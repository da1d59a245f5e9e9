/** Shared by the calls that create, change, delete, fill and empty queues. */
import type { Clock } from '../../core/time/instant.ts'
import type { AuditEntry } from '../../storage/contract/audit.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { Announcer } from '../announcer.ts'
import type { Attribution } from '../engine.ts'
import type { Quotas } from '../quotas/quotas.ts'
import type { Writer } from '../writes/writer.ts'
import type { QueueRuntimes } from './queue-runtimes.ts'

/** Many items are deleted or imported in steps: a long transaction would block all other writers. */
export const stepItemsMax = 1_000

export type QueueAdminParts = Readonly<{
  storage: StoreReads
  writer: Writer
  clock: Clock
  batchMsMax: number
  announcer: Announcer
  runtimes: QueueRuntimes
  quotas: Quotas
  onError(error: unknown): void
}>

/** For commands of which the store writes the audit row, because only it knows what they changed. */
export function createAuditContext(
  { clock }: QueueAdminParts,
  attribution: Attribution | undefined,
  action: string,
  details: AuditEntry['details'],
) {
  return attribution === undefined ? {} : { audit: { at: clock.now(), action, details, ...attribution } }
}
