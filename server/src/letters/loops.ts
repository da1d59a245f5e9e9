import { createLoop, type Loop } from '../engine/loop.ts'
import { KnownError } from '../errors.ts'
import type { Letters } from './letters.ts'

export type LetterIntervals = Readonly<{ autoMs: number; campaignsMs: number; retentionMs: number }>
type PassName = keyof Letters['passes']

/** While passes fail they follow each other ever more slowly, up to this. */
const failedRestMsMax = 10_000

/**
 * The background of the letters. A pass that says that there is more is followed by the next at once. Of passes that
 * fail in a row the first is told, and none while the store is away: that is told by who waits for it.
 */
export function createLetterLoops(
  letters: () => Pick<Letters, 'passes'>,
  intervals: LetterIntervals,
  onError: (pass: PassName, error: unknown) => void,
): Loop {
  const loopOf = (name: PassName, restMs: number): Loop => {
    let isMore = false
    let failures = 0
    const restNow = (): number => {
      if (isMore) return 0
      return Math.min(restMs * 2 ** failures, Math.max(restMs, failedRestMsMax))
    }
    return createLoop(
      restNow,
      async () => {
        isMore = false
        isMore = await letters().passes[name]()
        failures = 0
      },
      (error) => {
        failures = Math.min(failures + 1, 20)
        if (failures === 1 && !isStoreAway(error)) onError(name, error)
      },
    )
  }
  const loops = [
    loopOf('auto', intervals.autoMs),
    loopOf('campaigns', intervals.campaignsMs),
    loopOf('retention', intervals.retentionMs),
  ]
  return {
    start: () => {
      for (const loop of loops) loop.start()
    },
    stop: async () => {
      await Promise.all(loops.map((loop) => loop.stop()))
    },
  }
}

function isStoreAway(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'STORE_UNAVAILABLE'
}
