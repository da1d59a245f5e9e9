import { createLoop, type Loop } from '../engine/loop.ts'
import { KnownError } from '../errors.ts'
import type { Letters } from './letters.ts'

export type LetterIntervals = Readonly<{ autoMs: number; campaignsMs: number; retentionMs: number }>
type PassName = keyof Letters['passes']

/** Maximum wait between passes that fail. The wait doubles with each failure. */
const failedRestMsMax = 10_000

/** Share of the time that retention may use: it is not urgent, and live queues use the same store. */
const retentionShare = 0.05

/** Far more rounds than any test needs. Work that is not finished by then never ends. */
const roundsMax = 10_000

export interface LetterLoops extends Loop {
  /** Resolves when everything that is due by now is done. */
  advance(): Promise<void>
}

/**
 * The background loops of the letters. If a pass returns that more is left, the next one follows immediately;
 * retention waits in between, to keep its share of the time. If several passes fail in a row, only the first
 * failure is reported, and none while the store is unavailable: the store connection reports that.
 */
export function createLetterLoops(
  letters: () => Pick<Letters, 'passes'>,
  intervals: LetterIntervals,
  onError: (pass: PassName, error: unknown) => void,
): LetterLoops {
  const serialized = {
    auto: createSerializer(),
    campaigns: createSerializer(),
    groups: createSerializer(),
    retention: createSerializer(),
  }
  const createPassLoop = (name: PassName, restMs: number, share = 1): Loop => {
    let isMore = false
    let passMs = 0
    let failures = 0
    const computeRestMs = (): number => {
      if (isMore) return passMs * (1 / share - 1)
      return Math.min(restMs * 2 ** failures, Math.max(restMs, failedRestMsMax))
    }
    return createLoop(
      computeRestMs,
      async () => {
        isMore = false
        const startedAt = performance.now()
        isMore = await serialized[name](() => letters().passes[name]())
        passMs = performance.now() - startedAt
        failures = 0
      },
      (error) => {
        failures = Math.min(failures + 1, 20)
        if (failures === 1 && !isStoreUnavailable(error)) onError(name, error)
      },
    )
  }
  const loops = [
    createPassLoop('auto', intervals.autoMs),
    createPassLoop('campaigns', intervals.campaignsMs),
    createPassLoop('groups', intervals.campaignsMs),
    createPassLoop('retention', intervals.retentionMs, retentionShare),
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
          await serialized.auto(() => passes.auto({ isFresh: true })),
          await serialized.campaigns(() => passes.campaigns()),
          await serialized.groups(() => passes.groups()),
          await serialized.retention(() => passes.retention()),
        ]
        if (!isMore.includes(true)) return
      }
      throw new Error(`background work on letters did not finish within ${roundsMax} rounds`)
    },
  }
}

/** Runs passes one after the other: two passes of one kind would take the same locks from each other. */
function createSerializer(): <T>(pass: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (pass) => {
    const result = last.then(pass)
    last = result.catch(() => undefined)
    return result
  }
}

function isStoreUnavailable(error: unknown): boolean {
  return (
    error instanceof KnownError && (error.code === 'STORE_UNAVAILABLE' || error.code === 'STORE_TLS_FAILED')
  )
}
