/**
 * Work on many letters at a time steps back behind everything else: a busy queue waits for the same writer. While others write,
 * the work rests after each unit for a multiple of the time that it took; nobody else there, it does not.
 */

import type { WriterCommand } from './capture-encoding.ts'
import { changedLettersMax } from './wal.ts'

/** Letters that one unit may change from which on it steps back. */
const manyLetters = 32
/** How long it rests after a unit, in times of that. */
const restTimes = 4
/** However long a unit took: whoever waits for it has a lock that ends. */
const restMsMax = 500
/** So long nobody else wrote: nobody is there. */
const quietMs = 20

/** Campaigns, retention, what was asked for by the dozen. Captured letters are not among it, nor what becomes of those sent. */
export function isBackground(unit: readonly WriterCommand[]): boolean {
  return unit.some((command) => {
    const { op } = command
    return op !== 'import-letters' && op !== 'end-redrives' && changedLettersMax(command) >= manyLetters
  })
}

/** In the order in which they came. Times are of any clock that does not go back. */
export class BackgroundThrottle<T> {
  readonly #waiting: T[] = []
  #restUntilMs = Number.NEGATIVE_INFINITY
  #othersAtMs = Number.NEGATIVE_INFINITY

  add(work: T): void {
    this.#waiting.push(work)
  }

  noteForegroundWrite(nowMs: number): void {
    this.#othersAtMs = nowMs
  }

  /** In how many milliseconds the next one may begin; undefined: there is none. */
  delayMs(nowMs: number): number | undefined {
    if (this.#waiting.length === 0) return undefined
    return Math.max(0, Math.min(this.#restUntilMs, this.#othersAtMs + quietMs) - nowMs)
  }

  take(): T | undefined {
    return this.#waiting.shift()
  }

  noteBackgroundWrite(tookMs: number, nowMs: number): void {
    this.#restUntilMs = nowMs + Math.min(tookMs * restTimes, restMsMax)
  }
}
