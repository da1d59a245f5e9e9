/** The source of time. Tests pass their own clock, so that no test has to sleep. */
export interface Clock {
  /** Milliseconds since 1970 by the machine's clock. */
  nowMs(): number
  /** Milliseconds since an arbitrary start. Monotonic: adjusting the machine's clock does not affect it. */
  elapsedMs(): number
  setTimer(run: () => void, ms: number): unknown
  clearTimer(timer: unknown): void
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  elapsedMs: () => performance.now(),
  setTimer: (run, ms) => setTimeout(run, ms),
  clearTimer: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout>),
}

/**
 * Rejects with the signal's reason as soon as the signal aborts. Removes its timer and listener when it ends.
 */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = (): void => {
      clock.clearTimer(timer)
      reject(signal?.reason)
    }
    const timer = clock.setTimer(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
