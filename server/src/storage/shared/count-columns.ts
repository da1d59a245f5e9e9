import type { Counts } from '../contract/counts.ts'

/** Name in the contract → column. */
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

/** Of rows that are there now. `archived` is one of the archive's rows; the other counts only grow. */
export const gauges = ['waiting', 'scheduled', 'leased', 'done', 'dead', 'discarded'] as const
