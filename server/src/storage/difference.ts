import { type CampaignLetterState, campaignLetterStates } from './campaign-store.ts'
import type { Counts } from './storage.ts'

type Numbers = Readonly<{ counted: number; actual: number }>

/** One count that is not what the rows say, or a partition whose sum does not balance. */
export type Difference = QueueDifference | CampaignDifference

export type QueueDifference = Numbers &
  Readonly<{
    queue: string
    partition: number
    /** `letters`, `open-minutes`: the counts of letters by group, and of open ones by minute, summed over the queue (partition -1). */
    count: keyof Counts | 'conservation' | 'letters' | 'open-minutes'
  }>

/** How many letters of a campaign are in a state. */
export type CampaignDifference = Numbers & Readonly<{ campaign: string; count: CampaignLetterState }>

/** Where the count is, for people: `queue orders, partition 3`. */
export function placeOf(difference: Difference): string {
  if ('campaign' in difference) return `campaign ${difference.campaign}`
  const { queue, partition } = difference
  return partition < 0 ? `queue ${queue}` : `queue ${queue}, partition ${partition}`
}

type CampaignRow = Readonly<Record<string, unknown>>

/** A campaign's counts as they are and as they should be: rows of `campaign_id`, `state` (its number) and `n`. */
export function compareCampaigns(
  counted: readonly CampaignRow[],
  actual: readonly CampaignRow[],
): CampaignDifference[] {
  const [said, there] = [numbersOf(counted), numbersOf(actual)]
  const differences: CampaignDifference[] = []
  for (const key of [...new Set([...said.keys(), ...there.keys()])].sort()) {
    const numbers = { counted: said.get(key) ?? 0, actual: there.get(key) ?? 0 }
    if (numbers.counted === numbers.actual) continue
    const [count, campaign] = key.split('/') as [CampaignLetterState, string]
    differences.push({ campaign, count, ...numbers })
  }
  return differences
}

/** By state and campaign. */
function numbersOf(rows: readonly CampaignRow[]): Map<string, number> {
  return new Map(
    rows.map((row) => [`${campaignLetterStates[row.state as number]}/${row.campaign_id}`, row.n as number]),
  )
}
