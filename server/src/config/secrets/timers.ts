/** Clock and timers as a parameter, so that tests advance time instead of sleeping. */
export interface Timers {
  nowMs(): number
  /** Calls `run`, which must not reject, once after the wait. Returns a function that cancels it. */
  schedule(waitMs: number, run: () => Promise<void>): () => void
}

/** Timers of the process. They do not keep it alive: a lease renewal must not delay the exit. */
export const systemTimers: Timers = {
  nowMs: () => Date.now(),
  schedule: (waitMs, run) => {
    const timer = setTimeout(() => void run(), waitMs).unref()
    return () => clearTimeout(timer)
  },
}
