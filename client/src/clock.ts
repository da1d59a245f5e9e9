/** Where time comes from. Tests give their own, so that nothing has to sleep. */
export interface Clock {
  /** Milliseconds since 1970, as the machine believes. */
  nowMs(): number
  /** Milliseconds since some moment; never goes back, whatever happens to the machine's clock. */
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

/** Rejects with the signal's reason as soon as it aborts. Leaves neither timer nor listener behind. */
export function rest(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
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
