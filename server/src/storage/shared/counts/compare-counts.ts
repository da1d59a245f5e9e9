/**
 * Compares counts with the rows that they count. Both stores read the numbers; the comparison is the same.
 */
import { type CampaignLetterState, campaignLetterStates } from '../../contract/campaigns.ts'
import type { Counts } from '../../contract/counts.ts'
import type { CampaignDifference, CountedAndActual, QueueDifference } from '../../contract/difference.ts'
import { readNumber, readText } from '../rows/row-values.ts'
import { countNames, type Gauge, gauges } from './count-columns.ts'

type Row = Readonly<Record<string, unknown>>

export type PartitionDifference = CountedAndActual & Readonly<{ count: keyof Counts | 'conservation' }>

/** Compares the gauges of a partition with its rows, and the other counts with the law of conservation. */
export function comparePartition(
  counts: Counts,
  rows: Readonly<Record<Gauge, number>>,
  archivedRows: number,
): PartitionDifference[] {
  const ways = countNames.filter((name) => name !== 'accepted')
  const compared: PartitionDifference[] = [
    ...gauges.map((gauge) => ({ count: gauge, counted: counts[gauge], actual: rows[gauge] })),
    { count: 'archived', counted: counts.archived, actual: archivedRows },
    {
      count: 'conservation',
      counted: counts.accepted,
      actual: ways.reduce((sum, name) => sum + counts[name], 0),
    },
  ]
  return compared.filter(({ counted, actual }) => counted !== actual)
}

/** A count of letters of a queue under a key, and the same number recounted from the rows. */
export type KeyedCount = Readonly<{ queueId: number; key: string; n: number }>

export type KeyedDifference<Row extends KeyedCount> = CountedAndActual & Readonly<{ row: Row }>

export function compareKeyed<Row extends KeyedCount>(
  counted: readonly Row[],
  actual: readonly Row[],
): KeyedDifference<Row>[] {
  const countedByKey = new Map(counted.map((row) => [row.key, row]))
  const actualByKey = new Map(actual.map((row) => [row.key, row]))
  return [...new Map([...countedByKey, ...actualByKey])]
    .map(([key, row]) => ({
      row,
      counted: countedByKey.get(key)?.n ?? 0,
      actual: actualByKey.get(key)?.n ?? 0,
    }))
    .filter((difference) => difference.counted !== difference.actual)
}

/** One difference for each queue: the sums over the keys whose counts are wrong. */
export function sumByQueue(
  differences: readonly KeyedDifference<KeyedCount>[],
  count: 'letters' | 'open-minutes',
  queueNames: ReadonlyMap<number, string>,
): QueueDifference[] {
  const sums = new Map<number, CountedAndActual>()
  for (const { row, counted, actual } of differences) {
    const sum = sums.get(row.queueId) ?? { counted: 0, actual: 0 }
    sums.set(row.queueId, { counted: sum.counted + counted, actual: sum.actual + actual })
  }
  return [...sums].map(([queueId, sum]) => ({
    queue: queueNames.get(queueId) ?? '',
    partition: -1,
    count,
    ...sum,
  }))
}

/**
 * Reports queues with too few arrivals. The rows have `queue_id`, `counted` and `actual`: summed over the
 * hours of a queue that have too few, and over its groups that have too few. A missing arrival is usually in
 * both sums. Then the sum over hours is reported, which includes every letter.
 */
export function compareArrivalSums(
  queueNames: ReadonlyMap<number, string>,
  byHour: readonly Row[],
  byGroup: readonly Row[],
): QueueDifference[] {
  const byQueue = new Map([...byGroup, ...byHour].map((row) => [readNumber(row, 'queue_id'), row]))
  return [...byQueue]
    .map(([queueId, row]) => ({
      queue: queueNames.get(queueId) ?? '',
      partition: -1,
      count: 'arrivals' as const,
      counted: readNumber(row, 'counted'),
      actual: readNumber(row, 'actual'),
    }))
    .sort((a, b) => (a.queue < b.queue ? -1 : 1))
}

type CampaignCount = Readonly<{ campaign: string; state: CampaignLetterState; n: number }>

/** Compares the counts of campaigns: rows of `campaign_id`, `state` (its code) and `n`. */
export function compareCampaigns(counted: readonly Row[], actual: readonly Row[]): CampaignDifference[] {
  const [countedByKey, actualByKey] = [indexByStateAndCampaign(counted), indexByStateAndCampaign(actual)]
  return [...new Map([...countedByKey, ...actualByKey])]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, { campaign, state }]) => ({
      campaign,
      count: state,
      counted: countedByKey.get(key)?.n ?? 0,
      actual: actualByKey.get(key)?.n ?? 0,
    }))
    .filter((difference) => difference.counted !== difference.actual)
}

function indexByStateAndCampaign(rows: readonly Row[]): Map<string, CampaignCount> {
  return new Map(
    rows.map((row) => {
      const campaign = readText(row, 'campaign_id')
      const state = campaignLetterStates[readNumber(row, 'state')]
      if (state === undefined)
        throw new Error(`campaign ${campaign} has letters in unknown state ${row.state}`)
      return [`${state}/${campaign}`, { campaign, state, n: readNumber(row, 'n') }]
    }),
  )
}
