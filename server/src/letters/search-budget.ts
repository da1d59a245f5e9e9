/** How much a search looks at: in steps that are each short, within a time. */
export const msMaxDefault = 1_000
/** The first look is short: where much matches it is enough, where little does the next ones are longer. */
export const lookMaxFirst = 2_000
const lookMaxMax = 100_000
/** One look should not take longer: it holds a statement of the store. */
const lookMs = 200

/** As much as can be looked at in a short statement, and in the time that is left. */
export function nextLookMax(lookMax: number, tookMs: number, leftMs: number): number {
  const perMs = lookMax / Math.max(tookMs, 1)
  const wished = Math.min(lookMax * 4, perMs * Math.min(lookMs, Math.max(leftMs, 1)))
  return Math.round(Math.min(Math.max(wished, 100), lookMaxMax))
}
