import type { Clock } from '../src/http/clock.ts'

/** A clock that only advances when a test calls `advance`. */
export class ManualClock implements Clock {
  #nowMs = Date.parse('2026-01-01T00:00:00Z')
  readonly #startMs = this.#nowMs
  readonly #timers = new Map<number, { run: () => void; atMs: number }>()
  #lastTimer = 0

  /** The number of timers that are set. */
  get timers(): number {
    return this.#timers.size
  }

  nowMs(): number {
    return this.#nowMs
  }

  elapsedMs(): number {
    return this.#nowMs - this.#startMs
  }

  setTimer(run: () => void, ms: number): unknown {
    this.#timers.set(++this.#lastTimer, { run, atMs: this.#nowMs + ms })
    return this.#lastTimer
  }

  clearTimer(timer: unknown): void {
    this.#timers.delete(timer as number)
  }

  /**
   * Runs the timers that become due within `ms` in order, and pending promise callbacks before and after
   * each.
   */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    await runPendingCallbacks()
    for (;;) {
      const next = [...this.#timers].filter(([, { atMs }]) => atMs <= untilMs).toSorted(byTime)[0]
      if (next === undefined) break
      const [id, { run, atMs }] = next
      this.#timers.delete(id)
      this.#nowMs = Math.max(this.#nowMs, atMs)
      run()
      await runPendingCallbacks()
    }
    this.#nowMs = untilMs
  }
}

function byTime(
  [a, { atMs: aMs }]: [number, { atMs: number }],
  [b, { atMs: bMs }]: [number, { atMs: number }],
) {
  return aMs - bMs || a - b
}

async function runPendingCallbacks(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve))
}
