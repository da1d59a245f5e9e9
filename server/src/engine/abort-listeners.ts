/**
 * Hears of signals that abort, with one listener for each, however many wait on it. A worker with hundreds
 * of calls under way gives the same signal to all of them; and a listener that was removed still points to
 * the one that came after it, so that together they outlive the calls they were made for.
 */
export class Signals {
  readonly #onAborted: (signal: AbortSignal) => void
  readonly #heard = new Map<AbortSignal, { count: number; readonly listener: () => void }>()

  constructor(onAborted: (signal: AbortSignal) => void) {
    this.#onAborted = onAborted
  }

  /** For one that has not aborted. As often as it is heard, it is to be dropped. */
  hear(signal: AbortSignal): void {
    const heard = this.#heard.get(signal)
    if (heard !== undefined) {
      heard.count++
      return
    }
    const listener = () => this.#onAborted(signal)
    this.#heard.set(signal, { count: 1, listener })
    signal.addEventListener('abort', listener, { once: true })
  }

  drop(signal: AbortSignal): void {
    const heard = this.#heard.get(signal)
    if (heard === undefined || --heard.count > 0) return
    this.#heard.delete(signal)
    signal.removeEventListener('abort', heard.listener)
  }
}
