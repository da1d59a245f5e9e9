/** Whether the counts of campaigns are what their letters say. Looks at all of them. */
import { type CampaignLetterState, campaignLetterStates } from '../campaign-store.ts'
import { type CampaignDifference, campaignKey, compareCampaigns } from '../difference.ts'
import type { Database, Row } from './database.ts'

export function compareCampaignLetters(database: Database): CampaignDifference[] {
  const counted = database.all('select campaign_id, state, n from campaign_counts')
  const actual = database.all(
    'select campaign_id, state, count(*) as n from campaign_letters group by campaign_id, state',
  )
  return compareCampaigns(numbersOf(counted), numbersOf(actual))
}

/** Makes these counts anew from the rows. */
export function repairCampaign(database: Database, id: string): void {
  database.run('delete from campaign_counts where campaign_id = ?', id)
  database.run(
    `insert into campaign_counts (campaign_id, state, n)
     select campaign_id, state, count(*) from campaign_letters where campaign_id = ? group by state`,
    id,
  )
}

function numbersOf(rows: readonly Row[]): Map<string, number> {
  return new Map(
    rows.map((row) => {
      const state = campaignLetterStates[row.state as number] as CampaignLetterState
      return [campaignKey(row.campaign_id as string, state), row.n as number]
    }),
  )
}
