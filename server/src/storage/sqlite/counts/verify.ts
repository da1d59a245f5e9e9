/** Compares all counts with the rows that they count, and repairs them. */
import type { Instant } from '../../../core/time/instant.ts'
import type { Difference } from '../../contract/difference.ts'
import type { HeldLock } from '../../contract/locks.ts'
import { repairEntries } from '../../shared/audit/repair-audit.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import { fence } from '../locks/locks.ts'
import { dropOldBuckets } from './time-bucket-retention.ts'
import { compareCampaignLetters, repairCampaign } from './verify-campaigns.ts'
import { compareLetters, repairLetters } from './verify-letters.ts'
import { comparePartitions, repairPartitions } from './verify-partitions.ts'

/** Compares the counts that `reconcileCounts` can repair: all but those of arrivals. */
export function verifyCounts(database: Database): Difference[] {
  return [...comparePartitions(database), ...compareLetters(database), ...compareCampaignLetters(database)]
}

export function reconcileCounts(database: Database, lock: HeldLock | undefined, now: Instant): Difference[] {
  database.exec('begin immediate')
  try {
    if (lock !== undefined) fence(database, { op: 'fence', lock })
    const differences = verifyCounts(database)
    repairCounts(database, differences)
    insertAudit(database, repairEntries(differences, now))
    dropOldBuckets(database, now)
    database.exec('commit')
    return differences
  } catch (error) {
    if (database.isInTransaction) database.exec('rollback')
    throw error
  }
}

function repairCounts(database: Database, differences: readonly Difference[]): void {
  const ofCampaigns = differences.filter((found) => 'campaign' in found)
  for (const id of new Set(ofCampaigns.map(({ campaign }) => campaign))) repairCampaign(database, id)
  const ofQueues = differences.filter((found) => 'queue' in found)
  const ofLetters = ofQueues.filter(({ partition }) => partition < 0)
  for (const queue of new Set(ofLetters.map((found) => found.queue))) repairLetters(database, queue)
  repairPartitions(
    database,
    ofQueues.filter(({ partition }) => partition >= 0),
  )
}
