import type { Clock, Instant } from './core/time/instant.ts'

/** A clock that is set back by less than this stands still until it has caught up. */
const heldUsMax = 1_000_000

/**
 * A clock that does not show an earlier time after a small correction. A large step back is followed at once:
 * to stand still for an hour would stop everything that waits for a time.
 */
export function createSteadyClock(source: Clock): Clock {
  let last: Instant = Number.NEGATIVE_INFINITY
  return {
    now: () => {
      const now = source.now()
      if (now < last && last - now < heldUsMax) return last
      last = now
      return now
    },
  }
}
