import type { Clock, Instant } from '../core/instant.ts'
import { usPerMs } from '../core/instant.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { Writer } from './writer.ts'

export interface Clockwork {
  /** Everything that is due by now has happened when it resolves. */
  advance(): Promise<void>
  /** Something will be due then: earlier than what is waited for, it sets the alarm forward. */
  expect(at: Instant): void
  start(): void
  /** Resolves once no pass is running. */
  stop(): Promise<void>
}

const batchMax = 1_000
/** Another server may have stored something that is due before anything we know of. */
const restMsMax = 1_000
/** Rows that another server was working on when we looked come due again soon. */
const restMsMin = 5

/** Ends leases, expires, promotes: when the time has come, and not by looking all the time. */
export function createClockwork(
  parts: Readonly<{
    storage: Pick<StoreReads, 'nextDueAt'>
    writer: Writer
    clock: Clock
    onError(error: unknown): void
  }>,
): Clockwork {
  const { storage, writer, clock, onError } = parts
  let timer: NodeJS.Timeout | undefined
  let alarmAt = Number.POSITIVE_INFINITY
  let isStarted = false
  let current: Promise<void> = Promise.resolve()

  const pass = async (): Promise<void> => {
    for (;;) {
      const [{ changes }] = await writer.write([{ op: 'advance', now: clock.now(), countMax: batchMax }])
      // Until nothing is left: what just changed may be due again by now.
      if (changes.length === 0) return
    }
  }

  const setAlarm = (at: Instant): void => {
    if (!isStarted) return
    clearTimeout(timer)
    alarmAt = at
    // Rounded up: never before its time.
    const restMs = Math.ceil((at - clock.now()) / usPerMs)
    timer = setTimeout(ring, Math.min(Math.max(restMs, restMsMin), restMsMax))
  }

  const ring = (): void => {
    alarmAt = Number.POSITIVE_INFINITY
    const before = current
    current = before
      .then(pass)
      .then(() => storage.nextDueAt())
      .catch((error: unknown) => {
        onError(error)
        return null
      })
      .then((dueAt) => setAlarm(Math.min(dueAt ?? Number.POSITIVE_INFINITY, alarmAt)))
  }

  return {
    advance: () => {
      const done = current.then(pass)
      current = done.catch(() => undefined)
      return done
    },
    expect: (at) => {
      if (at < alarmAt) setAlarm(at)
    },
    start: () => {
      isStarted = true
      setAlarm(clock.now())
    },
    stop: async () => {
      isStarted = false
      clearTimeout(timer)
      await current
    },
  }
}
