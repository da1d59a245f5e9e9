import type { Instant } from '../../core/instant.ts'
import type { AuditEntry } from '../contract/audit.ts'
import type { Difference } from '../contract/difference.ts'

/** What the store mended by itself, kept for good: a log line is soon gone, and drift is a defect to be found. */
export function mendedEntries(differences: readonly Difference[], now: Instant): AuditEntry[] {
  return differences.map(({ count, counted, actual, ...place }) => ({
    at: now,
    actor: 'redrive',
    action: 'counts.repair',
    target: 'campaign' in place ? place.campaign : 'slug' in place ? place.slug : place.queue,
    reason: 'a count did not match the rows that it counts',
    requestId: '',
    details: { ...('partition' in place && { partition: place.partition }), count, counted, actual },
  }))
}
