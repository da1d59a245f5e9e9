import type { Instant } from '../../core/instant.ts'
import type { Difference } from '../difference.ts'
import { mendedEntries } from '../mended.ts'
import type { HeldLock } from '../storage.ts'
import { insertAudit } from './audit.ts'
import { repairCounts, verifyCounts } from './counts.ts'
import type { Database } from './database.ts'
import { trimHours } from './letter-counts.ts'
import { fence } from './locks.ts'

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
