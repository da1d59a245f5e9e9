/** Divides fetched records into lanes, which are stored at the same time. */
import type { FetchedRecords } from './decode-fetch.ts'

/** While the store writes some transactions, this server prepares the others. */
const lanesMax = 4

/**
 * Records of one partition of a dead queue stay in one lane, because the store writes them one transaction
 * after the other anyway. The largest of them are placed first, each in the emptiest lane.
 */
export function divideIntoLanes(fetched: readonly FetchedRecords[]): readonly (readonly FetchedRecords[])[] {
  const groups = [
    ...Map.groupBy(fetched, ({ claimed }) => `${claimed.queue}\n${claimed.queuePartition}`).values(),
  ]
  const lanes = Array.from({ length: lanesMax }, () => ({ count: 0, fetched: [] as FetchedRecords[] }))
  for (const group of groups.toSorted((a, b) => countRecords(b) - countRecords(a))) {
    const emptiest = lanes.reduce((one, other) => (other.count < one.count ? other : one))
    emptiest.count += countRecords(group)
    emptiest.fetched.push(...group)
  }
  return lanes.map((lane) => lane.fetched).filter((each) => each.length > 0)
}

function countRecords(fetched: readonly FetchedRecords[]): number {
  return fetched.reduce((sum, { records }) => sum + records.length, 0)
}
