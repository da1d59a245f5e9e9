/**
 * One server of a cluster compares the counts with their rows. It adds its result to the totals in the store,
 * and from their growth every server knows the result of the last comparison.
 */
import type { EventTotal } from '../../storage/contract/workers.ts'

/** The names of the totals. */
export const comparisonsTotal = 'counts-compared'
export const driftTotal = 'counts-drift'

export interface CountDrift {
  /** Wrong counts in the last comparison since this server started; 0 if there was none. */
  read(totals: readonly EventTotal[]): number
}

export function createCountDrift(): CountDrift {
  let before: Readonly<{ comparisons: number; drift: number }> | undefined
  let last = 0
  return {
    read: (totals) => {
      const find = (wanted: string): number => totals.find(({ name }) => name === wanted)?.count ?? 0
      const now = { comparisons: find(comparisonsTotal), drift: find(driftTotal) }
      if (before !== undefined && now.comparisons > before.comparisons) last = now.drift - before.drift
      before = now
      return last
    },
  }
}
