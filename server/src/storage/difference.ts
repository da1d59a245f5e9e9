import type { CampaignLetterState } from './campaign-store.ts'
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

/** A campaign's counts as they are and as they should be, by campaign and state. */
export function compareCampaigns(
  counted: ReadonlyMap<string, number>,
  actual: ReadonlyMap<string, number>,
): CampaignDifference[] {
  const differences: CampaignDifference[] = []
  for (const key of new Set([...counted.keys(), ...actual.keys()])) {
    const numbers = { counted: counted.get(key) ?? 0, actual: actual.get(key) ?? 0 }
    if (numbers.counted === numbers.actual) continue
    const [count, campaign] = key.split('/') as [CampaignLetterState, string]
    differences.push({ campaign, count, ...numbers })
  }
  return differences.sort((a, b) =>
    campaignKey(a.campaign, a.count) < campaignKey(b.campaign, b.count) ? -1 : 1,
  )
}

export function campaignKey(campaign: string, state: CampaignLetterState): string {
  return `${state}/${campaign}`
}
