import { describe, expect, it } from 'vitest'
import { createSteadyClock } from './steady-clock.ts'

describe('createSteadyClock', () => {
  const createClock = () => {
    const source = { at: 10_000_000 }
    return { source, clock: createSteadyClock({ now: () => source.at }) }
  }

  it('a clock that is set back by less than a second stands still until it has caught up', () => {
    const { source, clock } = createClock()
    expect(clock.now()).toBe(10_000_000)
    source.at = 9_000_001
    expect(clock.now()).toBe(10_000_000)
    source.at = 10_000_001
    expect(clock.now()).toBe(10_000_001)
  })

  it('a clock that is set back by a second or more shows the earlier time at once', () => {
    const { source, clock } = createClock()
    clock.now()
    source.at = 9_000_000
    expect(clock.now()).toBe(9_000_000)
    source.at = 9_000_001
    expect(clock.now()).toBe(9_000_001)
  })
})
