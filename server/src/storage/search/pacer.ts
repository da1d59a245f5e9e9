/**
 * The time of a search, and the size of its steps.
 *
 * A search is a series of short steps. The pacer decides how many letters the next step examines: from the
 * speed of the last step, so that a step takes about `stepMs`, whatever the store and the filter. These are
 * the only constants of the pace (docs/internals/search.md gives the reason of each value).
 */

/** How long a search takes if its caller sets no other limit. */
export const searchMsDefault = 1_000
/** How long a search takes whose caller needs an exact answer: a deep page, a purge, an expected count. */
export const searchMsLong = 5_000
/** Target duration of one step. */
export const stepMs = 100
/**
 * The first step examines this many letters. It is enough if many letters match. Callers that read a long
 * list only to count it ask for this many letters at once.
 */
export const lettersFirst = 1_000
const lettersLeast = 100
const lettersMost = 20_000
/** A step examines at most this many times as many letters as the step before. */
export const growth = 4

export type SearchLimits = Readonly<{
  /** How long the search may take; default: `searchMsDefault`. It finishes the step in progress. */
  msMax?: number
  /** How many letters the search may examine; default: any number. */
  examinedMax?: number
  /** A monotonic timer; default: the timer of the process. */
  elapsedMs?: () => number
}>

export class Pacer {
  readonly #elapsedMs: () => number
  readonly #deadline: number
  #examinedLeft: number
  #letters: number
  #startedMs = 0

  /** `countMax`: the letters that the search returns at most, which it examines in any case. */
  constructor({ msMax, examinedMax, elapsedMs }: SearchLimits, countMax: number) {
    this.#elapsedMs = elapsedMs ?? (() => performance.now())
    this.#deadline = this.#elapsedMs() + (msMax ?? searchMsDefault)
    this.#examinedLeft = examinedMax ?? Number.POSITIVE_INFINITY
    this.#letters = Math.min(Math.max(lettersFirst, countMax), lettersMost)
  }

  get isOver(): boolean {
    return this.#examinedLeft <= 0 || this.#elapsedMs() >= this.#deadline
  }

  /** The limits of the next step, which starts now. */
  startStep(): Readonly<{ examinedMax: number; msMax: number }> {
    this.#startedMs = this.#elapsedMs()
    const leftMs = Math.max(this.#deadline - this.#startedMs, 1)
    return { examinedMax: Math.min(this.#letters, this.#examinedLeft), msMax: Math.min(2 * stepMs, leftMs) }
  }

  endStep(examinedCount: number): void {
    const nowMs = this.#elapsedMs()
    this.#examinedLeft -= examinedCount
    this.#letters = chooseLetters(
      this.#letters,
      examinedCount,
      nowMs - this.#startedMs,
      this.#deadline - nowMs,
    )
  }
}

/** Returns how many letters the next step examines, from the speed of the last one and the time left. */
export function chooseLetters(letters: number, examined: number, tookMs: number, leftMs: number): number {
  const perMs = Math.max(examined, 1) / Math.max(tookMs, 1)
  const wished = Math.min(letters * growth, perMs * Math.min(stepMs, Math.max(leftMs, 1)))
  return Math.round(Math.min(Math.max(wished, lettersLeast), lettersMost))
}
