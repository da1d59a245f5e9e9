import type { Instant } from '../../../core/time/instant.ts'
import type { AuditEntry } from '../../contract/audit.ts'
import type { Difference } from '../../contract/difference.ts'

/** The audit rows of repaired counts. Drift is a defect to be found, and a log line does not last. */
export function repairEntries(differences: readonly Difference[], now: Instant): AuditEntry[] {
  return differences.map(({ count, counted, actual, ...subject }) => ({
    at: now,
    actor: 'redrive',
    action: 'counts.repair',
    target: getSubjectName(subject),
    reason: 'a count did not match the rows that it counts',
    requestId: '',
    details: { ...('partition' in subject && { partition: subject.partition }), count, counted, actual },
  }))
}

type Subject = Readonly<{ queue: string }> | Readonly<{ slug: string }> | Readonly<{ campaign: string }>

function getSubjectName(subject: Subject): string {
  if ('campaign' in subject) return subject.campaign
  return 'slug' in subject ? subject.slug : subject.queue
}
