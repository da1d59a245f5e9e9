import type { Counts, QueueCounts } from '../../contract/counts.ts'
import { readNumber, readTextOrNull } from '../rows/row-values.ts'

/** The column of each count. */
export const countColumns = {
  waiting: 'waiting',
  scheduled: 'scheduled',
  leased: 'leased',
  done: 'done',
  dead: 'dead',
  discarded: 'discarded',
  accepted: 'accepted',
  completed: 'completed',
  deadLettered: 'dead_lettered',
  dropped: 'dropped',
  deleted: 'deleted',
  forgotten: 'forgotten',
  archived: 'archived',
  purged: 'purged',
} as const satisfies Record<keyof Counts, string>

export const countNames = Object.keys(countColumns) as readonly (keyof Counts)[]

/**
 * The counts of rows that are in the queue now. `archived` counts the rows of the archive; all others only
 * grow.
 */
export const gauges = ['waiting', 'scheduled', 'leased', 'done', 'dead', 'discarded'] as const
export type Gauge = (typeof gauges)[number]

/** From a row with all columns of `countColumns`. */
export function decodeCounts(row: Readonly<Record<string, unknown>>): Counts {
  const counts = {} as Record<keyof Counts, number>
  for (const name of countNames) counts[name] = readNumber(row, countColumns[name])
  return counts
}

/** From a row with a column for each gauge; undefined: the partition has no rows. */
export function decodeGauges(row: Readonly<Record<string, unknown>> | undefined): Record<Gauge, number> {
  const numbers = {} as Record<Gauge, number>
  for (const gauge of gauges) numbers[gauge] = row === undefined ? 0 : readNumber(row, gauge)
  return numbers
}

/**
 * Adds up the rows of `partitions` by queue. `partitions` is a query with the columns `name` and those of
 * `countColumns`. The queues after the first `countMax` by accepted items become one row without a name.
 */
export function printQueueCounts(partitions: string, countMax: number): string {
  const columns = Object.values(countColumns)
  const sums = columns.map((column) => `cast(sum(${column}) as bigint) as ${column}`).join(', ')
  return `with summed as (select name, ${sums} from (${partitions}) p group by name),
    ranked as (select s.*, row_number() over (order by s.accepted desc, s.name) as rank from summed s),
    named as (select case when rank <= ${Math.max(0, Math.floor(countMax))} then name end as queue, ${columns.join(', ')} from ranked)
    select queue, ${sums} from named group by queue order by queue`
}

/** From a row of `printQueueCounts`. */
export function decodeQueueCounts(row: Readonly<Record<string, unknown>>): QueueCounts {
  return { queue: readTextOrNull(row, 'queue'), ...decodeCounts(row) }
}
