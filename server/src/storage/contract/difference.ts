/** The result of comparing counts with the rows that they count. */
import type { QueueName } from '../../core/ids/ids.ts'
import type { CampaignLetterState } from './campaigns.ts'
import type { Counts } from './counts.ts'

export type CountedAndActual = Readonly<{ counted: number; actual: number }>

/** A count that does not match its rows, or a partition whose counts violate conservation. */
export type Difference = QueueDifference | SlugDifference | CampaignDifference

export type QueueDifference = CountedAndActual &
  Readonly<{
    queue: QueueName
    partition: number
    /**
     * These counts are summed over the queue (partition -1): `letters`, the counts of letters by group;
     * `letter-sums`, the sums of these counts, if the store keeps them; `open-minutes`, the counts of open
     * letters by minute; `arrivals`, the counts of arrivals by hour. Arrivals are reported only if they are
     * too low, and then `actual` is their least possible number.
     */
    count: keyof Counts | 'conservation' | 'letters' | 'letter-sums' | 'open-minutes' | 'arrivals'
  }>

/** The letters of a slug in all queues, if the store keeps their sum. */
export type SlugDifference = CountedAndActual & Readonly<{ slug: string; count: 'letter-sums' }>

/** The number of letters of a campaign in one state. */
export type CampaignDifference = CountedAndActual & Readonly<{ campaign: string; count: CampaignLetterState }>

/** Names what the count belongs to, for people: `queue orders, partition 3`. */
export function describeSubject(difference: Difference): string {
  if ('campaign' in difference) return `campaign ${difference.campaign}`
  if ('slug' in difference) return `slug ${difference.slug}`
  const { queue, partition } = difference
  return partition < 0 ? `queue ${queue}` : `queue ${queue}, partition ${partition}`
}

/** The number of rows, for people: `the rows show 5`. */
export function describeActual({ count, actual }: Difference): string {
  return `the rows show ${count === 'arrivals' ? 'at least ' : ''}${actual}`
}
