import { type CampaignLetterState, campaignLetterStates } from './campaigns.ts'
import type { Counts } from './counts.ts'

type Numbers = Readonly<{ counted: number; actual: number }>

/** One count that is not what the rows say, or a partition whose sum does not balance. */
export type Difference = QueueDifference | SlugDifference | CampaignDifference

export type QueueDifference = Numbers &
  Readonly<{
    queue: string
    partition: number
    /**
     * Summed over the queue (partition -1): `letters`, the counts of letters by group; `letter-sums`, the sums of
     * those counts, where a store keeps any; `open-minutes`, the counts of open letters by minute; `arrivals`, those per
     * hour, where they are fewer than the letters that came. There `actual` is the least that they were.
     */
    count: keyof Counts | 'conservation' | 'letters' | 'letter-sums' | 'open-minutes' | 'arrivals'
  }>

/** The letters of a slug, in all queues, where a store keeps such a sum. */
export type SlugDifference = Numbers & Readonly<{ slug: string; count: 'letter-sums' }>

/** How many letters of a campaign are in a state. */
export type CampaignDifference = Numbers & Readonly<{ campaign: string; count: CampaignLetterState }>

/** Where the count is, for people: `queue orders, partition 3`. */
export function placeOf(difference: Difference): string {
  if ('campaign' in difference) return `campaign ${difference.campaign}`
  if ('slug' in difference) return `slug ${difference.slug}`
  const { queue, partition } = difference
  return partition < 0 ? `queue ${queue}` : `queue ${queue}, partition ${partition}`
}

/** What the rows say, for people: `but the rows say 5`. */
export function actualOf({ count, actual }: Difference): string {
  return `the rows say ${count === 'arrivals' ? 'at least ' : ''}${actual}`
}

type ShortRow = Readonly<Record<string, unknown>>

/**
 * Rows of `queue_id`, `counted` and `actual`: summed over the hours of a queue that got too few, and over its groups that
 * did. One that is missing is mostly in both; said are the hours, which know of every letter.
 */
export function arrivalDifferences(
  names: ReadonlyMap<number, string>,
  byHour: readonly ShortRow[],
  byGroup: readonly ShortRow[],
): QueueDifference[] {
  const short = new Map([...byGroup, ...byHour].map((row) => [row.queue_id as number, row]))
  return [...short]
    .map(([queueId, { counted, actual }]) => ({
      queue: names.get(queueId) ?? '',
      partition: -1,
      count: 'arrivals' as const,
      counted: counted as number,
      actual: actual as number,
    }))
    .sort((a, b) => (a.queue < b.queue ? -1 : 1))
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
