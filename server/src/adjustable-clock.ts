import type { Clock, Instant } from './core/time/instant.ts'

/** A clock that test suites can stop and set. Until then it shows the time of the real clock. */
export interface AdjustableClock extends Clock {
  /** Stops the clock at this time. */
  freeze(at: Instant): void
  /** Moves the clock forward. A stopped clock stays stopped. */
  advance(byUs: number): void
  /** Returns to the real time. */
  resume(): void
}

export function createAdjustableClock(real: Clock): AdjustableClock {
  let frozenAt: Instant | undefined
  let aheadUs = 0
  return {
    now: () => frozenAt ?? real.now() + aheadUs,
    freeze: (at) => {
      frozenAt = at
    },
    advance: (byUs) => {
      if (frozenAt === undefined) aheadUs += byUs
      else frozenAt += byUs
    },
    resume: () => {
      frozenAt = undefined
      aheadUs = 0
    },
  }
}
