/** Whether the counts of campaigns are what their letters say. Looks at all of them. */
import { type CampaignDifference, compareCampaigns } from '../../contract/difference.ts'
import { CampaignTally } from '../campaigns/campaign-letters.ts'
import type { Connection } from '../connection/connections.ts'

const counted = `select c.campaign_id, c.state, sum(c.n)::int8 as n from redrive.campaign_counts c group by 1, 2`
/** What is pending up to where the campaign has sent was sent, see campaign-turns.ts. */
const actual = `select l.campaign_id, case when l.state = 0 and l.place <= k.sent_until then 1 else l.state end as state,
    count(*) as n
  from redrive.campaign_letters l join redrive.campaigns k on k.id = l.campaign_id group by 1, 2`

export async function compareCampaignLetters(connection: Connection): Promise<CampaignDifference[]> {
  const said = await connection.query({ text: counted, isLong: true })
  const there = await connection.query({ text: actual, isLong: true })
  return compareCampaigns(said, there)
}

/** Adds what is missing, as for all counts. */
export async function mendCampaigns(
  connection: Connection,
  differences: readonly CampaignDifference[],
  slot: number,
): Promise<void> {
  const tally = new CampaignTally()
  for (const each of differences) tally.count(each.campaign, each.count, each.actual - each.counted)
  await tally.writeCounts(connection, [], slot)
}
