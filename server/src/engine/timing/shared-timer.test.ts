import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SharedTimer } from './shared-timer.ts'

describe('a shared timer', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** Removes the deadlines that have passed, and records when. */
  function timerFor(times: Set<number>, ended: [number, number][]): SharedTimer {
    const timer = new SharedTimer((now) => {
      for (const time of times) if (time <= now && times.delete(time)) ended.push([time, performance.now()])
      return Math.min(...times)
    })
    for (const time of times) timer.wakeBy(time, performance.now())
    return timer
  }

  it('a timer fires for each deadline, and a few milliseconds later if another one was just before', () => {
    const start = performance.now()
    const ended: [number, number][] = []
    timerFor(new Set([start + 300, start + 100, start + 101.5, start + 102]), ended)
    vi.advanceTimersByTime(1_000)
    expect(ended.map(([time]) => time - start)).toEqual([100, 101.5, 102, 300])
    for (const [time, at] of ended) expect(Math.abs(at - time)).toBeLessThan(7)
  })

  it('a timer fires for a deadline beyond the longest possible timeout', () => {
    const start = performance.now()
    const ended: [number, number][] = []
    const far = 2 ** 31 + 1_000
    timerFor(new Set([start + far]), ended)
    vi.advanceTimersByTime(10_000)
    expect(ended).toEqual([])
    vi.advanceTimersByTime(far)
    expect(ended.map(([time]) => time - start)).toEqual([far])
  })

  it('a timer does not fire once it is stopped, and can be set again', () => {
    const start = performance.now()
    const ended: [number, number][] = []
    const times = new Set([start + 100])
    const timer = timerFor(times, ended)
    timer.stop()
    vi.advanceTimersByTime(1_000)
    expect(ended).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
    timer.wakeBy(performance.now() + 50, performance.now())
    vi.advanceTimersByTime(50)
    expect(ended).toHaveLength(1)
  })
})
