import type { Instant } from '../../../core/instant.ts'
import type { Counts } from '../../contract/counts.ts'
import type { CampaignDifference, Difference, QueueDifference } from '../../contract/difference.ts'
import type { HeldLock } from '../../contract/locks.ts'
import { countNames, gauges } from '../../shared/count-columns.ts'
import { mendedEntries } from '../../shared/repair-audit.ts'
import { insertEntries } from '../audit/audit.ts'
import {
  beginWrite,
  type Connection,
  type Connections,
  type Row,
  runInTransaction,
} from '../connection/connections.ts'
import { fence } from '../locks/locks.ts'
import { countedPartitions, countsOf, Tally, writeTally } from './counts.ts'
import { mendSums } from './letter-count-rollups.ts'
import { writeLetterTally } from './letter-counts.ts'
import { moveHorizon } from './time-bucket-retention.ts'
import { compareArrivals } from './verify-arrivals.ts'
import { compareCampaignLetters, mendCampaigns } from './verify-campaigns.ts'
import { compareLetters, type LetterDrift } from './verify-letters.ts'

/** A row of the counts that only the reconciler writes, so that it never waits for a writer, nor a writer for it. */
const reconcilerSlot = -1

/** One snapshot for all its statements: the counts and the rows as they were at the same instant. */
const beginSnapshot = 'begin isolation level repeatable read'

type Found = Readonly<{
  queueId: number
  difference: QueueDifference & { count: keyof Counts | 'conservation' }
}>
type Sums = Readonly<{ queueId: number; partition: number; createdMs: bigint; leaseMs: bigint }>

export async function verifyCounts(connections: Connections): Promise<Difference[]> {
  return connections.transaction(`${beginSnapshot} read only`, async (connection) => {
    const { found, letters, campaigns } = await compare(connection)
    const arrivals = await compareArrivals(connection)
    return [...found.map(({ difference }) => difference), ...letters.differences, ...arrivals, ...campaigns]
  })
}

/**
 * Adds what was missing instead of setting what is right: what others count meanwhile is added to the
 * same sums, so a correction that held in the snapshot holds after it too. The lock is looked at only
 * when there is something to mend: held from the start it could not be renewed during a long recount.
 */
export async function reconcileCounts(
  connections: Connections,
  lock: HeldLock | undefined,
  now: Instant,
): Promise<Difference[]> {
  return connections.use(async (connection) => {
    // Before the snapshot, or two reconcilers would both add the same correction.
    await connection.query({ text: `select pg_advisory_lock(hashtext('redrive reconcile'))` })
    try {
      const { found, sums, letters, campaigns } = await runInTransaction(
        connection,
        `${beginSnapshot} read only`,
        () => compare(connection),
      )
      const tally = correctionOf(found, sums)
      const differences = [...found.map(({ difference }) => difference), ...letters.differences, ...campaigns]
      await runInTransaction(connection, beginWrite, async () => {
        if (lock !== undefined) await fence({ connection }, { lock })
        if (!tally.isEmpty) await connection.query(writeTally, [...tally.encode(), reconcilerSlot])
        if (!letters.correction.isEmpty) {
          const missing = letters.correction.encode(Number.NEGATIVE_INFINITY)
          await connection.query(writeLetterTally, [...missing, reconcilerSlot])
        }
        await mendSums(connection, reconcilerSlot)
        await mendCampaigns(connection, campaigns, reconcilerSlot)
        await insertEntries(connection, mendedEntries(differences, now))
      })
      await runInTransaction(connection, beginWrite, () => moveHorizon(connection, now))
      return differences
    } finally {
      // A connection that broke has given the lock up already.
      await connection
        .query({ text: `select pg_advisory_unlock(hashtext('redrive reconcile'))` })
        .catch(() => {})
    }
  })
}

async function compare(
  connection: Connection,
): Promise<{ found: Found[]; sums: Sums[]; letters: LetterDrift; campaigns: CampaignDifference[] }> {
  // Every row is looked at, so here the table is best read from front to back, however long it takes.
  await connection.query({
    text: `set local enable_seqscan = on; set local enable_hashjoin = on; set local statement_timeout = 0`,
  })
  const actual = rowsByPlace(
    await connection.query({
      text: `select queue_id, partition,
          count(*) filter (where state = 0) as waiting, count(*) filter (where state = 1) as scheduled,
          count(*) filter (where state = 2) as leased, count(*) filter (where state = 3) as done,
          count(*) filter (where state = 4) as dead, count(*) filter (where state = 5) as discarded,
          coalesce(sum(created_at / 1000) filter (where state in (0, 2)), 0) as created_sum,
          coalesce(sum(lease_deadline / 1000) filter (where state = 2), 0) as lease_sum
        from redrive.items group by queue_id, partition`,
      isLong: true,
    }),
  )
  const archived = rowsByPlace(
    await connection.query({
      text: 'select queue_id, partition, count(*) as n from redrive.archive group by queue_id, partition',
      isLong: true,
    }),
  )
  const counted = await connection.query({
    text: `${countedPartitions} group by q.name, p.queue_id, p.partition order by q.name, p.partition`,
  })
  const found: Found[] = []
  const sums: Sums[] = []
  for (const row of counted) {
    const there = actual.get(`${row.queue_id}/${row.partition}`)
    const queueId = row.queue_id as number
    const place = { queue: row.name as string, partition: row.partition as number }
    const note = (count: Found['difference']['count'], counts: number, rows: number): void => {
      if (counts === rows) return
      found.push({ queueId, difference: { ...place, count, counted: counts, actual: rows } })
    }
    const counts = countsOf(row)
    for (const gauge of gauges) note(gauge, counts[gauge], (there?.[gauge] as number | undefined) ?? 0)
    const kept = (archived.get(`${row.queue_id}/${row.partition}`)?.n as number | undefined) ?? 0
    note('archived', counts.archived, kept)
    const parts = countNames.filter((name) => name !== 'accepted')
    note(
      'conservation',
      counts.accepted,
      parts.reduce((sum, name) => sum + counts[name], 0),
    )
    const createdMs =
      BigInt((there?.created_sum as string | undefined) ?? 0) - BigInt(row.created_sum as string)
    const leaseMs = BigInt((there?.lease_sum as string | undefined) ?? 0) - BigInt(row.lease_sum as string)
    if (createdMs !== 0n || leaseMs !== 0n)
      sums.push({ queueId, partition: place.partition, createdMs, leaseMs })
  }
  const letters = await compareLetters(connection)
  return { found, sums, letters, campaigns: await compareCampaignLetters(connection) }
}

/** The gauges become what the rows say, and `accepted` what then balances. */
function correctionOf(found: readonly Found[], sums: readonly Sums[]): Tally {
  const tally = new Tally()
  for (const { queueId, difference } of found) {
    const { partition, count, counted, actual } = difference
    const missing = actual - counted
    if (count === 'conservation') tally.add(queueId, partition, 'accepted', missing)
    else {
      tally.add(queueId, partition, count, missing)
      tally.add(queueId, partition, 'accepted', missing)
    }
  }
  for (const { queueId, partition, createdMs, leaseMs } of sums) {
    tally.addSums(queueId, partition, createdMs, leaseMs)
  }
  return tally
}

function rowsByPlace(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [`${row.queue_id}/${row.partition}`, row]))
}
