/** Compares all counts with the rows that they count, and repairs them. */
import type { Instant } from '../../../core/time/instant.ts'
import type { CampaignDifference, Difference } from '../../contract/difference.ts'
import type { HeldLock } from '../../contract/locks.ts'
import { repairEntries } from '../../shared/audit/repair-audit.ts'
import { insertAudit } from '../audit/audit.ts'
import { type Connection, runInTransaction } from '../connection/connection.ts'
import { beginWrite, type Connections } from '../connection/connections.ts'
import { fence } from '../locks/locks.ts'
import { writeCountChanges } from './counts.ts'
import { repairSums } from './letter-count-rollups.ts'
import { writeLetterCountChanges } from './letter-counts.ts'
import { dropOldBuckets } from './time-bucket-retention.ts'
import { compareArrivals } from './verify-arrivals.ts'
import { compareCampaignLetters, repairCampaigns } from './verify-campaigns.ts'
import { compareLetters, type LetterDrift } from './verify-letters.ts'
import { comparePartitions, type PartitionDrift } from './verify-partitions.ts'

/**
 * Only the reconciler writes this slot of the counts, so that it and other writers never wait for each other.
 */
const reconcilerSlot = -1

/** All statements read one snapshot: the counts and the rows of the same instant. */
const beginSnapshot = 'begin isolation level repeatable read'

export async function verifyCounts(connections: Connections): Promise<Difference[]> {
  return connections.transaction(`${beginSnapshot} read only`, async (connection) => {
    const { partitions, letters, campaigns } = await compare(connection)
    const arrivals = await compareArrivals(connection)
    return [...partitions.differences, ...letters.differences, ...arrivals, ...campaigns]
  })
}

/**
 * Adds the missing numbers to the counts instead of setting them: other transactions add to the same sums at
 * the same time, so a correction that is right in the snapshot stays right. The lock is checked only before
 * the repair: this transaction would block its renewal during a long recount.
 */
export async function reconcileCounts(
  connections: Connections,
  lock: HeldLock | undefined,
  now: Instant,
): Promise<Difference[]> {
  return connections.use(async (connection) => {
    // Lock before the snapshot: otherwise two reconcilers could add the same correction.
    await connection.query({ text: `select pg_advisory_lock(hashtext('redrive reconcile'))` })
    try {
      const drift = await runInTransaction(connection, `${beginSnapshot} read only`, () =>
        compare(connection),
      )
      const { partitions, letters, campaigns } = drift
      const differences = [...partitions.differences, ...letters.differences, ...campaigns]
      await runInTransaction(connection, beginWrite, async () => {
        if (lock !== undefined) await fence({ connection }, { lock })
        await repair(connection, drift)
        await insertAudit(connection, repairEntries(differences, now))
      })
      await runInTransaction(connection, beginWrite, () => dropOldBuckets(connection, now))
      return differences
    } finally {
      // A broken connection has released the lock already.
      await connection
        .query({ text: `select pg_advisory_unlock(hashtext('redrive reconcile'))` })
        .catch(() => {})
    }
  })
}

type Drift = Readonly<{ partitions: PartitionDrift; letters: LetterDrift; campaigns: CampaignDifference[] }>

async function compare(connection: Connection): Promise<Drift> {
  // Every row is read, so a sequential scan is the best plan here, and it may take as long as it needs.
  await connection.query({
    text: `set local enable_seqscan = on; set local enable_hashjoin = on; set local statement_timeout = 0;
      set local idle_in_transaction_session_timeout = '60s'`,
  })
  return {
    partitions: await comparePartitions(connection),
    letters: await compareLetters(connection),
    campaigns: await compareCampaignLetters(connection),
  }
}

async function repair(connection: Connection, { partitions, letters, campaigns }: Drift): Promise<void> {
  if (!partitions.correction.isEmpty) {
    await connection.query(writeCountChanges, [...partitions.correction.encode(), reconcilerSlot])
  }
  if (!letters.correction.isEmpty) {
    const missing = letters.correction.encode(Number.NEGATIVE_INFINITY)
    await connection.query(writeLetterCountChanges, [...missing, reconcilerSlot])
  }
  await repairSums(connection, reconcilerSlot)
  await repairCampaigns(connection, campaigns, reconcilerSlot)
}
