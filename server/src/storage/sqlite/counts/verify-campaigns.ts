/**
 * Compares the counts of campaigns with their letters, and repairs them. Reads all letters of all campaigns.
 */
import type { CampaignDifference } from '../../contract/difference.ts'
import { compareCampaigns } from '../../shared/counts/compare-counts.ts'
import type { Database } from '../connection/database.ts'

/** A pending letter up to `sent_until` counts as sent, see campaigns/send-progress.ts. */
const state = 'iif(l.state = 0 and l.place <= coalesce(k.sent_until, 0), 1, l.state)'
const letters = 'campaign_letters l left join campaigns k on k.id = l.campaign_id'

export function compareCampaignLetters(database: Database): CampaignDifference[] {
  const counted = database.all('select campaign_id, state, n from campaign_counts')
  const actual = database.all(
    `select l.campaign_id, ${state} as state, count(*) as n from ${letters} group by 1, 2`,
  )
  return compareCampaigns(counted, actual)
}

/** Replaces the counts of a campaign by new ones from its rows. */
export function repairCampaign(database: Database, id: string): void {
  database.run('delete from campaign_counts where campaign_id = ?', id)
  database.run(
    `insert into campaign_counts (campaign_id, state, n)
     select l.campaign_id, ${state}, count(*) from ${letters} where l.campaign_id = ? group by 2`,
    id,
  )
}
