import { describe, expect, it } from 'vitest'
import { addLatencies, countLatency, newLatencies, readPercentile } from './latency.ts'

function countAll(values: readonly number[]): number[] {
  const latencies = newLatencies()
  for (const value of values) countLatency(latencies, value)
  return latencies
}

describe('latencies', () => {
  it('percentiles are in the bucket of their latency', () => {
    const latencies = countAll([...new Array<number>(95).fill(3), ...new Array<number>(5).fill(700)])
    expect(readPercentile(latencies, 0.5)).toBeGreaterThan(2)
    expect(readPercentile(latencies, 0.5)).toBeLessThanOrEqual(5)
    expect(readPercentile(latencies, 0.95)).toBeLessThanOrEqual(5)
    expect(readPercentile(latencies, 0.99)).toBeGreaterThan(500)
    expect(readPercentile(latencies, 0.99)).toBeLessThanOrEqual(1_000)
  })

  it('sums of minutes keep their percentiles, and no attempts have none', () => {
    const sum = addLatencies(countAll([1, 1, 1]), countAll([90_000]))
    expect(sum.reduce((total, count) => total + count, 0)).toBe(4)
    expect(readPercentile(sum, 1)).toBe(60_000)
    expect(readPercentile(newLatencies(), 0.5)).toBeNull()
    expect(readPercentile(addLatencies([], []), 0.5)).toBeNull()
  })
})
