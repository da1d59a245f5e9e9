import type { Clock, Instant } from './core/instant.ts'

// What the two clocks may differ by before the wall clock is believed. It only has milliseconds itself.
const differenceMsMax = 2

/**
 * The time of this machine to the microsecond.
 *
 * `Date.now()` follows corrections of the system's clock but has milliseconds; `performance.now()` has
 * microseconds but hears of no correction. So the second counts on from where the first was last read.
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
