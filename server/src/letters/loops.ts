import { createLoop, type Loop } from '../engine/loop.ts'
import { KnownError } from '../errors.ts'
import type { Letters } from './letters.ts'

export type LetterIntervals = Readonly<{ autoMs: number; campaignsMs: number; retentionMs: number }>
type PassName = keyof Letters['passes']

/** While passes fail they follow each other ever more slowly, up to this. */
const failedRestMsMax = 10_000

/** How much of the time retention may work while there is more to do: it has no haste, and live queues share the store. */
const retentionShare = 0.05

/** Far more than any test needs: what does not come to rest by then never will. */
const roundsMax = 10_000

export interface LetterLoops extends Loop {
  /** Everything that is due by now has happened when it resolves. */
  advance(): Promise<void>
}

/**
 * The background of the letters. A pass that says that there is more is followed by the next at once; one of retention by a
 * rest, so long that its share of the time is kept. Of passes that fail in a row the first is told, and none while the
 * store is away: that is told by who waits for it.
 */
export function createLetterLoops(
  letters: () => Pick<Letters, 'passes'>,
  intervals: LetterIntervals,
  onError: (pass: PassName, error: unknown) => void,
): LetterLoops {
  const inTurn = { auto: createTurns(), campaigns: createTurns(), retention: createTurns() }
  const loopOf = (name: PassName, restMs: number, share = 1): Loop => {
    let isMore = false
    let passMs = 0
    let failures = 0
    const restNow = (): number => {
      if (isMore) return passMs * (1 / share - 1)
      return Math.min(restMs * 2 ** failures, Math.max(restMs, failedRestMsMax))
    }
    return createLoop(
      restNow,
      async () => {
        isMore = false
        const startedAt = performance.now()
        isMore = await inTurn[name](() => letters().passes[name]())
        passMs = performance.now() - startedAt
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
    loopOf('retention', intervals.retentionMs, retentionShare),
  ]
  return {
    start: () => {
      for (const loop of loops) loop.start()
    },
    stop: async () => {
      await Promise.all(loops.map((loop) => loop.stop()))
    },
    advance: async () => {
      for (let round = 0; round < roundsMax; round++) {
        const { passes } = letters()
        const isMore = [
          await inTurn.auto(() => passes.auto({ isFresh: true })),
          await inTurn.campaigns(() => passes.campaigns()),
          await inTurn.retention(() => passes.retention()),
        ]
        if (!isMore.includes(true)) return
      }
      throw new Error(`the letters did not come to rest within ${roundsMax} rounds`)
    },
  }
}

/** A pass holds locks under the name of this server: two of a kind would take them from each other. */
function createTurns(): <T>(pass: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (pass) => {
    const turn = last.then(pass)
    last = turn.catch(() => undefined)
    return turn
  }
}

function isStoreAway(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'STORE_UNAVAILABLE'
}
