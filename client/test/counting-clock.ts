import { type Clock, systemClock } from '../src/clock.ts'

/** The system's clock, which also knows how many timers are set. */
export function countingClock(): { clock: Clock; timers: () => number } {
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
