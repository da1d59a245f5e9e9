/** Whether the counts of campaigns are what their letters say. Looks at all of them. */
import { type CampaignDifference, compareCampaigns } from '../../contract/difference.ts'
import type { Database } from '../connection/database.ts'

/** What is pending up to where the campaign has sent was sent, see campaign-turns.ts. */
const shown = 'iif(l.state = 0 and l.place <= coalesce(k.sent_until, 0), 1, l.state)'
const letters = 'campaign_letters l left join campaigns k on k.id = l.campaign_id'

export function compareCampaignLetters(database: Database): CampaignDifference[] {
  const counted = database.all('select campaign_id, state, n from campaign_counts')
  const actual = database.all(
    `select l.campaign_id, ${shown} as state, count(*) as n from ${letters} group by 1, 2`,
  )
  return compareCampaigns(counted, actual)
}

/** Makes these counts anew from the rows. */
export function repairCampaign(database: Database, id: string): void {
  database.run('delete from campaign_counts where campaign_id = ?', id)
  database.run(
    `insert into campaign_counts (campaign_id, state, n)
     select l.campaign_id, ${shown}, count(*) from ${letters} where l.campaign_id = ? group by 2`,
    id,
  )
}
