/** Limits of a search: short statements that examine up to N letters each, within a total time. */
export const msMaxDefault = 1_000
/** The first statement is short. It is enough if many letters match; otherwise the next ones examine more. */
export const examinedMaxFirst = 2_000
const examinedMaxLargest = 100_000
/** Target duration of one statement. */
const statementMs = 200

/** Returns how many letters the next statement examines, from the speed of the last one and the time left. */
export function chooseExaminedMax(examinedMax: number, tookMs: number, leftMs: number): number {
  const perMs = examinedMax / Math.max(tookMs, 1)
  const wished = Math.min(examinedMax * 4, perMs * Math.min(statementMs, Math.max(leftMs, 1)))
  return Math.round(Math.min(Math.max(wished, 100), examinedMaxLargest))
}
