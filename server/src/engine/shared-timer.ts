/**
 * One timer for many who wait: nearly all of them are served long before their time, and a timer each would
 * be made and thrown away for nothing. `ring` ends those whose time has come by `now` and says when the next
 * one's comes (Infinity: nobody's). Times are those of `performance.now()`.
 */
export class Alarm {
  readonly #ring: (now: number) => number
  #timer: NodeJS.Timeout | undefined
  #at = Number.POSITIVE_INFINITY

  constructor(ring: (now: number) => number) {
    this.#ring = ring
  }

  /** Rings at that time, or before. */
  by(at: number, now: number): void {
    if (at >= this.#at) return
    clearTimeout(this.#timer)
    this.#at = at
    // Beyond that a timer would ring at once. It rings then in vain, and is set anew.
    this.#timer = setTimeout(() => this.#rings(), Math.min(Math.max(at - now, 0), timerMsMax))
  }

  /** Nobody waits: a process that has nothing else to do may end. */
  off(): void {
    if (this.#at === Number.POSITIVE_INFINITY) return
    clearTimeout(this.#timer)
    this.#at = Number.POSITIVE_INFINITY
  }

  #rings(): void {
    this.#at = Number.POSITIVE_INFINITY
    // Timers count whole milliseconds, and may be early by a part of one.
    const now = performance.now() + 1
    const next = this.#ring(now)
    // Those whose times come shortly after each other share a look at all of them.
    if (next < Number.POSITIVE_INFINITY) this.by(Math.max(next, now + restMsMin), now)
  }
}

const restMsMin = 5
const timerMsMax = 2 ** 31 - 1
