/**
 * Creates the jobs of accepted messages. The fan-out of a message starts when it is stored. `pass` finds the
 * messages that were left without jobs, because a server was killed in between or the write failed.
 */
import { addDuration, type Clock } from '../../../core/time/instant.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'

export interface FanOut {
  /** Creates the jobs of a new message soon. */
  add(number: number): void
  /** Creates the jobs of messages that wait for longer than the rational delay. Returns whether more wait. */
  pass(): Promise<boolean>
  /** Resolves when the messages added so far are dispatched, or their dispatch has failed. */
  waitUntilIdle(): Promise<void>
}

export type FanOutParts = Readonly<{
  storage: () => Pick<StoreReads, 'listUndispatched'>
  engine: () => Pick<Engine, 'write'>
  clock: Clock
  /** A message without jobs is left behind after this time. */
  delayUs: number
  onError(error: unknown): void
}>

const messagesMax = 64
/** One transaction creates about this number of jobs, so that it does not block other writes for long. */
const jobsMax = 5_000

export function createFanOut({ storage, engine, clock, delayUs, onError }: FanOutParts): FanOut {
  let waiting: number[] = []
  let current: Promise<void> | undefined
  /** From the last transaction: a message of this many jobs is expected next. */
  let jobsPerMessage = 1

  const dispatch = async (numbers: readonly number[]): Promise<void> => {
    const [{ dispatched, jobs }] = await engine().write([
      { op: 'dispatch-messages', numbers, now: clock.now() },
    ])
    const created = jobs.reduce((sum, { count }) => sum + count, 0)
    if (dispatched.length > 0) jobsPerMessage = Math.max(created / dispatched.length, 1)
  }
  const countNext = (): number => Math.max(1, Math.min(messagesMax, Math.floor(jobsMax / jobsPerMessage)))
  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      const count = countNext()
      const numbers = waiting.slice(0, count)
      waiting = waiting.slice(count)
      // The recovery pass repeats a dispatch that failed.
      await dispatch(numbers).catch(onError)
    }
    current = undefined
  }

  return {
    add: (number) => {
      waiting.push(number)
      // Messages of the same tick of the event loop share a transaction.
      current ??= Promise.resolve().then(run)
    },
    pass: async () => {
      const countMax = countNext()
      const numbers = await storage().listUndispatched({
        before: addDuration(clock.now(), -delayUs),
        countMax,
      })
      if (numbers.length === 0) return false
      await dispatch(numbers)
      return numbers.length === countMax
    },
    waitUntilIdle: async () => {
      while (current !== undefined) await current
    },
  }
}
