/** Requests of one kind, by when each came: increasing numbers. `work` does those from one place up to another. */
export type Kind = Readonly<{ arrivals: readonly number[]; work(from: number, to: number): Promise<void> }>

/** Requests of one kind between which none of another came; `arrival` is that of the last. */
export type Run = { arrival: number; work(): Promise<void> }

/** All of them in the order in which they came, whatever they are. */
export function runsOf(kinds: readonly Kind[]): Run[] {
  const all = kinds.flatMap((kind) => kind.arrivals.map((arrival, place) => ({ kind, arrival, place })))
  all.sort((left, right) => left.arrival - right.arrival)
  const runs: Run[] = []
  for (let at = 0; at < all.length; ) {
    const first = all[at] as (typeof all)[number]
    let last = first
    for (at++; all[at]?.kind === first.kind; at++) last = all[at] as (typeof all)[number]
    const { kind, place } = first
    const to = last.place + 1
    runs.push({ arrival: last.arrival, work: () => kind.work(place, to) })
  }
  return runs
}
