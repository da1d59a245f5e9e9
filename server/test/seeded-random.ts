/** Random numbers that a seed repeats. Usable outside of Vitest, in the processes that tests start. */
export interface SeededRandom {
  readonly seed: number
  /** In [0, 1). */
  next(): number
  /** A whole number in [0, count). */
  below(count: number): number
  pick<T>(values: readonly T[]): T
}

export function createSeededRandom(seed: number): SeededRandom {
  const next = seededNumbers(seed)
  const below = (count: number): number => Math.floor(next() * count)
  return { seed, next, below, pick: (values) => values[below(values.length)] as (typeof values)[number] }
}

/** The same seed gives the same numbers in [0, 1). */
export function seededNumbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    // Mulberry32: short, and even enough for tests.
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
