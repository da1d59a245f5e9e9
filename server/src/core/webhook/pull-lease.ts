/** The holder of the lease of a pull consumer. It keeps the additional time that the consumer asked for. */

/** The longest additional time, in seconds. */
export const incrementalSecondsMax = 10 * 365 * 24 * 3_600

export function formatPullHolder(incrementalSeconds: number): string {
  return `pull+${incrementalSeconds}s`
}

/** 0 for any other holder. */
export function readIncrementalSeconds(holder: string | null | undefined): number {
  const match = /^pull\+(\d{1,9})s$/.exec(holder ?? '')
  return match === null ? 0 : Number(match[1])
}
