export type Pass = (signal: AbortSignal) => Promise<void>

export interface Loop {
  start(): void
  /** Resolves once no pass is running. Can be called twice, and before `start`. */
  stop(): Promise<void>
}

/**
 * Runs passes with pauses in between; passes never overlap. A failed pass is reported, not fatal.
 *
 * A function for `pauseMs` is called after each pass, so that a loop can back off.
 */
export function createLoop(
  pauseMs: number | (() => number),
  pass: Pass,
  onError: (error: unknown) => void,
): Loop {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let current: Promise<void> = Promise.resolve()

  const tick = (): void => {
    current = pass(stopping.signal)
      .catch(onError)
      .finally(() => {
        if (stopping.signal.aborted) return
        timer = setTimeout(tick, typeof pauseMs === 'number' ? pauseMs : pauseMs())
      })
  }
  return {
    start: () => {
      if (!stopping.signal.aborted) timer ??= setTimeout(tick, 0)
    },
    stop: async () => {
      stopping.abort()
      clearTimeout(timer)
      await current
    },
  }
}
