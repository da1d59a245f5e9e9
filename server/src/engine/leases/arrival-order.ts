/**
 * Requests of one kind by their arrival numbers, which increase. `process` does those from one index up to
 * another.
 */
export type RequestKind = Readonly<{
  arrivals: readonly number[]
  process(from: number, to: number): Promise<void>
}>

/**
 * Successive requests of one kind, with none of another kind in between; `arrival` is that of the last one.
 */
export type Run = { arrival: number; process(): Promise<void> }

/** Splits requests of several kinds into runs, in order of arrival. */
export function splitIntoRuns(kinds: readonly RequestKind[]): Run[] {
  const all = kinds.flatMap((kind) => kind.arrivals.map((arrival, index) => ({ kind, arrival, index })))
  all.sort((left, right) => left.arrival - right.arrival)
  const runs: Run[] = []
  for (let at = 0; at < all.length; ) {
    const first = all[at] as (typeof all)[number]
    let last = first
    for (at++; all[at]?.kind === first.kind; at++) last = all[at] as (typeof all)[number]
    const { kind, index } = first
    const to = last.index + 1
    runs.push({ arrival: last.arrival, process: () => kind.process(index, to) })
  }
  return runs
}
