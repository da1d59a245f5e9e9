import { describe, expect, it } from 'vitest'
import { createSystemClock } from './system-clock.ts'

describe('createSystemClock', () => {
  it('the clock has microseconds between two milliseconds of the wall clock', () => {
    let elapsedMs = 0
    const clock = createSystemClock(
      () => 1_000 + Math.floor(elapsedMs),
      () => elapsedMs,
    )
    const instants = [0, 0.25, 0.5, 1, 1.5].map((ms) => {
      elapsedMs = ms
      return clock.now()
    })
    expect(instants).toEqual([1_000_000, 1_000_250, 1_000_500, 1_001_000, 1_001_500])
  })

  it('the clock follows the wall clock if that is set forwards or backwards', () => {
    let wallMs = 1_000
    const clock = createSystemClock(
      () => wallMs,
      () => 0,
    )
    wallMs = 5_000
    expect(clock.now()).toBe(5_000_000)
    wallMs = 2_000
    expect(clock.now()).toBe(2_000_000)
  })

  it('the clock reads the time of the machine by default', () => {
    const beforeMs = Date.now()
    const ms = createSystemClock().now() / 1_000
    // The clock may differ from the wall clock by up to 2 ms.
    expect(ms).toBeGreaterThanOrEqual(beforeMs - 2)
    expect(ms).toBeLessThanOrEqual(Date.now() + 3)
  })
})
