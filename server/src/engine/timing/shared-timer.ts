/**
 * One timer for many waiters. Nearly all of them are served long before their deadline, and a timer each
 * would be created and cleared for nothing. Times are those of `performance.now()`.
 */
export class SharedTimer {
  readonly #onTime: (now: number) => number
  #timer: NodeJS.Timeout | undefined
  #at = Number.POSITIVE_INFINITY

  /**
   * `onTime` ends the waiters whose deadline is `now` or before, and returns the next deadline, or
   * Infinity.
   */
  constructor(onTime: (now: number) => number) {
    this.#onTime = onTime
  }

  /** Calls `onTime` at that time, or before. */
  wakeBy(at: number, now: number): void {
    if (at >= this.#at) return
    clearTimeout(this.#timer)
    this.#at = at
    // A longer timeout would fire at once. If the time has not come when it fires, the timer is set again.
    this.#timer = setTimeout(() => this.#fire(), Math.min(Math.max(at - now, 0), timerMsMax))
  }

  /** For when there are no waiters: a process that has nothing else to do may end. */
  stop(): void {
    if (this.#at === Number.POSITIVE_INFINITY) return
    clearTimeout(this.#timer)
    this.#at = Number.POSITIVE_INFINITY
  }

  #fire(): void {
    this.#at = Number.POSITIVE_INFINITY
    // Timers count whole milliseconds, and may fire a fraction of one too early.
    const now = performance.now() + 1
    const next = this.#onTime(now)
    // Deadlines that follow each other closely share one pass over all waiters.
    if (next < Number.POSITIVE_INFINITY) this.wakeBy(Math.max(next, now + pauseMsMin), now)
  }
}

const pauseMsMin = 5
const timerMsMax = 2 ** 31 - 1
