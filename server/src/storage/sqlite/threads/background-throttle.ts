/**
 * Commands that change many letters (campaigns, retention) share the writer with busy queues. They run in the
 * background: while other writes arrive, the writer pauses after each background write for a multiple of the
 * time that it took. Without other writes there is no pause.
 */
import type { WriterCommand } from './capture-encoding.ts'
import { countChangedLettersMax } from './wal.ts'

/** A write that changes at least this many letters runs in the background. */
const manyLetters = 32
/** The pause after a background write, as a multiple of its duration. */
const pauseFactor = 4
/** The longest pause: the caller may hold a lock whose lease ends. */
const pauseMsMax = 500
/** Without a foreground write for this long, there is no pause. */
const quietMs = 20

/** Captured letters and the ends of redrives are never background work: other systems wait for them. */
export function isBackground(write: readonly WriterCommand[]): boolean {
  return write.some((command) => {
    const { op } = command
    return op !== 'import-letters' && op !== 'end-redrives' && countChangedLettersMax(command) >= manyLetters
  })
}

/**
 * Background work in the order of its arrival, and when the next one may start. Times are of a monotonic
 * clock.
 */
export class BackgroundThrottle<T> {
  readonly #waiting: T[] = []
  #pauseUntilMs = Number.NEGATIVE_INFINITY
  #foregroundAtMs = Number.NEGATIVE_INFINITY

  add(work: T): void {
    this.#waiting.push(work)
  }

  noteForegroundWrite(nowMs: number): void {
    this.#foregroundAtMs = nowMs
  }

  noteBackgroundWrite(tookMs: number, nowMs: number): void {
    this.#pauseUntilMs = nowMs + Math.min(tookMs * pauseFactor, pauseMsMax)
  }

  /** Milliseconds until the next work may start; undefined if there is none. */
  delayMs(nowMs: number): number | undefined {
    if (this.#waiting.length === 0) return undefined
    return Math.max(0, Math.min(this.#pauseUntilMs, this.#foregroundAtMs + quietMs) - nowMs)
  }

  take(): T | undefined {
    return this.#waiting.shift()
  }
}
