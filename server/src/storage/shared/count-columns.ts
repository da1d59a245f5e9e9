import type { Counts } from '../contract/counts.ts'
import { readNumber } from './row-values.ts'

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
