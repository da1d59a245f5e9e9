import type { Instant } from '../../../core/instant.ts'
import type { Difference } from '../../contract/difference.ts'
import type { HeldLock } from '../../contract/locks.ts'
import { mendedEntries } from '../../shared/repair-audit.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import { fence } from '../locks/locks.ts'
import { repairCounts, verifyCounts } from './counts.ts'
import { trimHours } from './letter-counts.ts'

export function reconcile(database: Database, lock: HeldLock | undefined, now: Instant): Difference[] {
  database.exec('begin immediate')
  try {
    if (lock !== undefined) fence(database, { op: 'fence', lock })
    const differences = verifyCounts(database)
    repairCounts(database, differences)
    insertAudit(database, mendedEntries(differences, now))
    trimHours(database, now)
    database.exec('commit')
    return differences
  } catch (error) {
    if (database.isInTransaction) database.exec('rollback')
    throw error
  }
}
