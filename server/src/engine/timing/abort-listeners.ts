/**
 * Listens to abort signals, with one listener for each signal however many calls use it. A worker with
 * hundreds of calls gives the same signal to all of them. With a listener per call, each removed listener
 * would still point to the one added after it, so that all of them outlive their calls.
 */
export class AbortListeners {
  readonly #onAborted: (signal: AbortSignal) => void
  readonly #listeners = new Map<AbortSignal, { count: number; readonly listener: () => void }>()

  constructor(onAborted: (signal: AbortSignal) => void) {
    this.#onAborted = onAborted
  }

  /** For a signal that has not aborted. Call `remove` as often as `add`. */
  add(signal: AbortSignal): void {
    const existing = this.#listeners.get(signal)
    if (existing !== undefined) {
      existing.count++
      return
    }
    const listener = () => this.#onAborted(signal)
    this.#listeners.set(signal, { count: 1, listener })
    signal.addEventListener('abort', listener, { once: true })
  }

  remove(signal: AbortSignal): void {
    const existing = this.#listeners.get(signal)
    if (existing === undefined || --existing.count > 0) return
    this.#listeners.delete(signal)
    signal.removeEventListener('abort', existing.listener)
  }
}
