import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Alarm } from './shared-timer.ts'

describe('an alarm', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** Ends those whose time has come, and notes when. */
  function alarmFor(times: Set<number>, ended: [number, number][]): Alarm {
    const alarm = new Alarm((now) => {
      for (const time of times) if (time <= now && times.delete(time)) ended.push([time, performance.now()])
      return Math.min(...times)
    })
    for (const time of times) alarm.by(time, performance.now())
    return alarm
  }

  it('rings for each in its time, and not much later when another was just before', () => {
    const start = performance.now()
    const ended: [number, number][] = []
    alarmFor(new Set([start + 300, start + 100, start + 101.5, start + 102]), ended)
    vi.advanceTimersByTime(1_000)
    expect(ended.map(([time]) => time - start)).toEqual([100, 101.5, 102, 300])
    for (const [time, at] of ended) expect(Math.abs(at - time)).toBeLessThan(7)
  })

  it('rings for who waits longer than a timer can', () => {
    const start = performance.now()
    const ended: [number, number][] = []
    const far = 2 ** 31 + 1_000
    alarmFor(new Set([start + far]), ended)
    vi.advanceTimersByTime(10_000)
    expect(ended).toEqual([])
    vi.advanceTimersByTime(far)
    expect(ended.map(([time]) => time - start)).toEqual([far])
  })

  it('rings for nobody once it is off, and can be set again', () => {
    const start = performance.now()
    const ended: [number, number][] = []
    const times = new Set([start + 100])
    const alarm = alarmFor(times, ended)
    alarm.off()
    vi.advanceTimersByTime(1_000)
    expect(ended).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
    alarm.by(performance.now() + 50, performance.now())
    vi.advanceTimersByTime(50)
    expect(ended).toHaveLength(1)
  })
})
