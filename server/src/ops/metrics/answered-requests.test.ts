import { describe, expect, it } from 'vitest'
import { AnsweredRequests } from './answered-requests.ts'

const minute = 60_000

function createAnsweredRequests() {
  const clock = { ms: 1_000 }
  const answered = new AnsweredRequests(() => clock.ms)
  const answer = (ms: number, over: { method?: string; path?: string; status?: number } = {}) =>
    answered.observe({ method: 'POST', path: '/a', status: 200, ms, ...over })
  return { clock, answered, answer, median: () => answered.read([0.5])[0]?.quantiles[0] }
}

describe('answered requests', () => {
  it('answered requests are counted by route, method and status, and their durations are added up', () => {
    const { answered, answer } = createAnsweredRequests()
    answer(1)
    answer(2)
    answer(3, { status: 404 })
    answer(4, { method: 'GET' })
    answer(5, { path: '/b' })
    expect(answered.read([])).toEqual([
      {
        path: '/a',
        count: 4,
        secondsSum: 0.01,
        quantiles: [],
        answers: [
          { method: 'POST', status: 200, count: 2 },
          { method: 'POST', status: 404, count: 1 },
          { method: 'GET', status: 200, count: 1 },
        ],
      },
      {
        path: '/b',
        count: 1,
        secondsSum: 0.005,
        quantiles: [],
        answers: [{ method: 'POST', status: 200, count: 1 }],
      },
    ])
  })

  it('quantiles of durations are accurate to 1 %, from microseconds to minutes', () => {
    for (const scale of [0.001, 0.04, 1, 700]) {
      const { answered, answer } = createAnsweredRequests()
      for (let part = 1; part <= 1_000; part++) answer(part * scale)
      const [median = 0, high = 0] = answered.read([0.5, 0.99])[0]?.quantiles ?? []
      expect(Math.abs(median / (0.5 * scale) - 1)).toBeLessThan(0.01)
      expect(Math.abs(high / (0.99 * scale) - 1)).toBeLessThan(0.01)
    }
  })

  it('a request is counted even if its duration is zero or larger than the largest bucket', () => {
    const { answered, answer } = createAnsweredRequests()
    for (const ms of [0, 0.000_1, 1e9]) answer(ms)
    const [figures] = answered.read([0.01, 1])
    expect(figures?.count).toBe(3)
    expect(figures?.quantiles[0]).toBe(0.000_001)
    expect(figures?.quantiles[1]).toBeGreaterThanOrEqual(3_600)
  })

  it('a request counts for the quantiles for five to ten minutes, and for the sums without end', () => {
    const { clock, answered, answer, median } = createAnsweredRequests()
    answer(1_000)
    clock.ms += 4 * minute
    answer(1_000)
    clock.ms += 2 * minute
    expect(median()).toBeCloseTo(1, 1)
    answer(10)
    answer(10)
    answer(10)
    expect(median()).toBeCloseTo(0.01, 3)
    clock.ms += 6 * minute
    answer(10)
    expect(answered.read([1])[0]?.quantiles[0]).toBeCloseTo(0.01, 3)
    clock.ms += 11 * minute
    expect(median()).toBe(0)
    expect(answered.read([])[0]).toMatchObject({ count: 6, secondsSum: 2.04 })
  })
})
