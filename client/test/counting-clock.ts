import { type Clock, systemClock } from '../src/http/clock.ts'

/** The system clock, extended by a count of the timers that are set. */
export function createCountingClock(): { clock: Clock; timers: () => number } {
  const set = new Set<unknown>()
  const clock: Clock = {
    ...systemClock,
    setTimer: (run, ms) => {
      const timer = systemClock.setTimer(() => {
        set.delete(timer)
        run()
      }, ms)
      set.add(timer)
      return timer
    },
    clearTimer: (timer) => {
      set.delete(timer)
      systemClock.clearTimer(timer)
    },
  }
  return { clock, timers: () => set.size }
}
