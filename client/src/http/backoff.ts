export type Backoff = Readonly<{ msMin: number; msMax: number }>

/**
 * The delay before try number `tries` + 1. It doubles with each try up to `msMax`.
 * Half of the delay is random, so that clients that failed together do not retry together.
 */
export function computeBackoffMs({ msMin, msMax }: Backoff, tries: number, random: () => number): number {
  // Bound the exponent before raising: 0 * 2 ** 1100 is NaN.
  const ms = Math.min(msMin * 2 ** Math.min(tries - 1, 30), msMax)
  return ms / 2 + (ms / 2) * random()
}
