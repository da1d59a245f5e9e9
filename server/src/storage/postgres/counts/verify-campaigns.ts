/**
 * Compares the counts of campaigns with their letters, and repairs them. Reads all letters of all campaigns.
 */
import type { CampaignDifference } from '../../contract/difference.ts'
import { compareCampaigns } from '../../shared/counts/compare-counts.ts'
import { CampaignChanges } from '../campaigns/campaign-letters.ts'
import type { Connection } from '../connection/connection.ts'

const countedText = `select c.campaign_id, c.state, sum(c.n)::int8 as n from redrive.campaign_counts c group by 1, 2`
/** A pending letter up to `sent_until` counts as sent, see campaigns/send-progress.ts. */
const actualText = `select l.campaign_id, case when l.state = 0 and l.place <= k.sent_until then 1 else l.state end as state,
    count(*) as n
  from redrive.campaign_letters l join redrive.campaigns k on k.id = l.campaign_id group by 1, 2`

export async function compareCampaignLetters(connection: Connection): Promise<CampaignDifference[]> {
  const counted = await connection.query({ text: countedText, isLong: true })
  const actual = await connection.query({ text: actualText, isLong: true })
  return compareCampaigns(counted, actual)
}

/** Adds the missing numbers, as for all counts (verify.ts). */
export async function repairCampaigns(
  connection: Connection,
  differences: readonly CampaignDifference[],
  slot: number,
): Promise<void> {
  const changes = new CampaignChanges()
  for (const each of differences) changes.count(each.campaign, each.count, each.actual - each.counted)
  await changes.writeCounts(connection, [], slot)
}
