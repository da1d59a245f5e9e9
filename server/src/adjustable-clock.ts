import type { Clock, Instant } from './core/instant.ts'

/** A clock that test suites can stop and set. Until they do, it is the clock it was made from. */
export interface AdjustableClock extends Clock {
  /** Stands still there. */
  freeze(at: Instant): void
  /** Forward from where it is, standing still from then on if it did before. */
  advance(byUs: number): void
  /** Back to the real time. */
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
