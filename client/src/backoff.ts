export type Backoff = Readonly<{ msMin: number; msMax: number }>

/**
 * The rest before try number `tries` + 1: doubles each time up to the bound, then at least half of it.
 * The other half is chance, so that clients that failed together do not come back together.
 */
export function backoffMs({ msMin, msMax }: Backoff, tries: number, random: () => number): number {
  // Bounded before the power is taken: 0 * 2 ** 1100 is NaN.
  const ms = Math.min(msMin * 2 ** Math.min(tries - 1, 30), msMax)
  return ms / 2 + (ms / 2) * random()
}
