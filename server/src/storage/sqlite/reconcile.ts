import type { Difference } from '../storage.ts'
import { repairCounts, verifyCounts } from './counts.ts'
import type { Database } from './database.ts'

export function reconcile(database: Database): Difference[] {
  database.exec('begin immediate')
  try {
    const differences = verifyCounts(database)
    repairCounts(database, differences)
    database.exec('commit')
    return differences
  } catch (error) {
    if (database.isInTransaction) database.exec('rollback')
    throw error
  }
}
