import { describe, expect, it } from 'vitest'
import { createSystemClock } from './system-clock.ts'

describe('the clock of the system', () => {
  it('has microseconds between two milliseconds of the wall clock', () => {
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

  it('follows the wall clock when that is set, forwards and backwards', () => {
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

  it('tells the time', () => {
    expect(Math.abs(createSystemClock().now() / 1_000 - Date.now())).toBeLessThan(50)
  })
})
