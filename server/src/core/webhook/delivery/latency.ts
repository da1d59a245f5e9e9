/** Latencies as counts in buckets: small to store, and sums of servers and minutes keep their percentiles. */

/** The upper bounds of the buckets in milliseconds. The last bucket has the rest. */
export const latencyBoundsMs = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000,
] as const

export function newLatencies(): number[] {
  return new Array<number>(latencyBoundsMs.length + 1).fill(0)
}

export function countLatency(latencies: number[], latencyMs: number): void {
  const found = latencyBoundsMs.findIndex((bound) => latencyMs <= bound)
  const bucket = found === -1 ? latencyBoundsMs.length : found
  latencies[bucket] = (latencies[bucket] ?? 0) + 1
}

export function addLatencies(first: readonly number[], second: readonly number[]): number[] {
  return newLatencies().map((_, bucket) => (first[bucket] ?? 0) + (second[bucket] ?? 0))
}

/**
 * The latency that a share of the attempts did not exceed, interpolated within its bucket. Null: there are no
 * attempts. The rest of the last bucket counts as its lower bound.
 */
export function readPercentile(latencies: readonly number[], share: number): number | null {
  const total = latencies.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let left = share * total
  for (const [bucket, count] of latencies.entries()) {
    if (count > 0 && left <= count) {
      const low = latencyBoundsMs[bucket - 1] ?? 0
      const high = latencyBoundsMs[bucket] ?? low
      return Math.round((low + (high - low) * (left / count)) * 100) / 100
    }
    left -= count
  }
  return latencyBoundsMs.at(-1) ?? null
}
