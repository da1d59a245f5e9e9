import type { Clock, Instant } from './core/time/instant.ts'

// The two clocks may differ by this much, because the wall clock has a resolution of a millisecond.
const differenceMsMax = 2

/**
 * The time of this machine in microseconds.
 *
 * `Date.now()` follows corrections of the system clock, but has a resolution of a millisecond.
 * `performance.now()` has a resolution of a microsecond, but ignores corrections. So the second measures the
 * time since the first was last read, and a larger difference between the two means that the system clock was
 * set.
 */
export function createSystemClock(
  wallMs: () => number = Date.now,
  elapsedMs: () => number = () => performance.now(),
): Clock {
  let originMs = wallMs() - elapsedMs()
  return {
    now: (): Instant => {
      const ms = originMs + elapsedMs()
      const differenceMs = wallMs() - ms
      if (Math.abs(differenceMs) <= differenceMsMax) return Math.floor(ms * 1_000)
      originMs += differenceMs
      return Math.floor((ms + differenceMs) * 1_000)
    },
  }
}
