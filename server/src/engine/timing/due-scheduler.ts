import type { ClockStep } from '../../core/items/transitions.ts'
import type { Clock, Instant } from '../../core/time/instant.ts'
import { usPerMs } from '../../core/time/instant.ts'
import type { CorrectLeasesResult, LeasePosition } from '../../storage/contract/items.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { Writer } from '../writes/writer.ts'

export interface DueScheduler {
  /** Everything that is due by now has happened when it resolves, without a grace period. */
  advance(): Promise<void>
  /** Something will be due at that instant: the next pass starts then at the latest. */
  wakeBy(at: Instant): void
  start(): void
  /** Resolves once no pass is running. */
  stop(): Promise<void>
}

const batchMax = 1_000
/** Other servers may store items that are due before anything that this server knows of. */
const pauseMsMax = 1_000
/** Rows that another server was changing during a pass are due again soon. */
const pauseMsMin = 5
/**
 * The Queue API promises that a lease ends 20 to 80 ms after its deadline: a worker that completes its item
 * at the last moment still holds the lease when the request arrives.
 */
const graceUs = 30 * usPerMs
/** A clock that differs by more than this from the time that has passed was set. */
const clockToleranceUs = 1_000 * usPerMs

/**
 * Ends leases, expires items and makes scheduled items available when their time comes, plus `graceUs`. A
 * timer is set for the next instant at which something is due, so that an idle store is not polled all the
 * time.
 */
export function createDueScheduler(
  parts: Readonly<{
    storage: Pick<StoreReads, 'readNextDueAt'>
    writer: Writer
    clock: Clock
    /** A clock that is never set. Without it, a clock that was set forward is not noticed. */
    elapsedUs?: () => number
    onError(error: unknown): void
  }>,
): DueScheduler {
  const { storage, writer, clock, elapsedUs, onError } = parts
  let timer: NodeJS.Timeout | undefined
  let timerAt = Number.POSITIVE_INFINITY
  let isStarted = false
  let current: Promise<void> = Promise.resolve()

  /** The latest time of the clock; infinite if leases may be from before a clock was set back. */
  let latestAt: Instant = Number.NEGATIVE_INFINITY
  /** The time of the clock when `elapsedUs` was at zero; undefined until the clock was looked at. */
  let originAt: Instant | undefined

  const findStep = (now: Instant): ClockStep | undefined => {
    if (now < latestAt - clockToleranceUs) return { direction: 'back' }
    const expected = originAt === undefined || elapsedUs === undefined ? now : originAt + elapsedUs()
    const byUs = now - expected
    return byUs > clockToleranceUs ? { direction: 'forward', byUs, before: expected } : undefined
  }

  /**
   * Leases from before the clock was set must neither last longer nor end earlier. Returns the time up to
   * which items may be advanced.
   */
  const checkClock = async (): Promise<Instant> => {
    const now = clock.now()
    const origin = elapsedUs === undefined ? undefined : now - elapsedUs()
    const step = findStep(now)
    for (let after: LeasePosition | null = null; step !== undefined; ) {
      const [{ next }]: [CorrectLeasesResult] = await writer.write([
        { op: 'correct-leases', step, now, after },
      ])
      if (next === null) break
      after = next
    }
    latestAt = step === undefined ? Math.max(latestAt, now) : now
    originAt = origin
    return now
  }

  const pass = async (delayUs: number): Promise<void> => {
    for (;;) {
      const now = (await checkClock()) - delayUs
      const [{ changes }] = await writer.write([{ op: 'advance', now, countMax: batchMax }])
      // Until nothing is left: an item that just changed may be due again by now.
      if (changes.length === 0) return
    }
  }

  const setTimer = (at: Instant): void => {
    if (!isStarted) return
    clearTimeout(timer)
    timerAt = at
    // Rounded up: a pass never starts before its time.
    const pauseMs = Math.ceil((at + graceUs - clock.now()) / usPerMs)
    timer = setTimeout(runPass, Math.min(Math.max(pauseMs, pauseMsMin), pauseMsMax))
  }

  const runPass = (): void => {
    timerAt = Number.POSITIVE_INFINITY
    current = current
      .then(() => pass(graceUs))
      .then(() => storage.readNextDueAt())
      .catch((error: unknown) => {
        onError(error)
        return null
      })
      .then((dueAt) => setTimer(Math.min(dueAt ?? Number.POSITIVE_INFINITY, timerAt)))
  }

  return {
    advance: () => {
      const done = current.then(() => pass(0))
      current = done.catch(() => undefined)
      return done
    },
    wakeBy: (at) => {
      if (at < timerAt) setTimer(at)
    },
    start: () => {
      isStarted = true
      // The clock may have been set back while no server was running.
      latestAt = Number.POSITIVE_INFINITY
      setTimer(clock.now())
    },
    stop: async () => {
      isStarted = false
      clearTimeout(timer)
      await current
    },
  }
}
