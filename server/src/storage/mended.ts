import type { Instant } from '../core/instant.ts'
import type { AuditEntry, Difference } from './storage.ts'

/** What the store mended by itself, kept for good: a log line is soon gone, and drift is a defect to be found. */
export function mendedEntries(differences: readonly Difference[], now: Instant): AuditEntry[] {
  return differences.map(({ queue, partition, count, counted, actual }) => ({
    at: now,
    actor: 'redrive',
    action: 'counts.mend',
    target: queue,
    reason: 'a count did not match the rows that it counts',
    requestId: '',
    details: { partition, count, counted, actual },
  }))
}
