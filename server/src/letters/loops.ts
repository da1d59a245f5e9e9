import { createLoop, type Loop } from '../engine/loop.ts'
import type { Letters } from './letters.ts'

export type LetterIntervals = Readonly<{ autoMs: number; campaignsMs: number; retentionMs: number }>

/** The background of the letters. A pass that says that there is more is followed by the next at once. */
export function createLetterLoops(
  letters: () => Letters,
  intervals: LetterIntervals,
  onError: (pass: keyof Letters['passes'], error: unknown) => void,
): Loop {
  const loopOf = (name: keyof Letters['passes'], restMs: number): Loop => {
    let isMore = false
    return createLoop(
      () => (isMore ? 0 : restMs),
      async () => {
        // Until it is known to be otherwise: a pass that fails rests before the next.
        isMore = false
        isMore = await letters().passes[name]()
      },
      (error) => onError(name, error),
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
