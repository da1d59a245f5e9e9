/** Time and waiting, from outside, so that tests tick instead of sleeping. */
export interface Timers {
  nowMs(): number
  /** Runs once after the wait; what it returns never rejects. Returns the way to call it off. */
  after(waitMs: number, run: () => Promise<void>): () => void
}

/** Timers of the process. They do not keep it alive: renewing a lease is no reason not to end. */
export const systemTimers: Timers = {
  nowMs: () => Date.now(),
  after: (waitMs, run) => {
    const timer = setTimeout(() => void run(), waitMs).unref()
    return () => clearTimeout(timer)
  },
}
