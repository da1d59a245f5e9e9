import { createDeferred } from '../timing.ts'

/**
 * Lets the work of a partition start, holds it back during a rebalance, and ends it. Work that is running
 * when the gate closes finishes; the gate knows when nothing is running.
 */
export class PartitionGate {
  readonly #ended = new AbortController()
  #isClosed = false
  #running = 0
  #changed = createDeferred<void>()

  /** No work may start now. */
  get isClosed(): boolean {
    return this.#isClosed || this.#ended.signal.aborted
  }

  get isEnded(): boolean {
    return this.#ended.signal.aborted
  }

  close(): void {
    this.#isClosed = true
    this.#change()
  }

  open(): void {
    this.#isClosed = false
    this.#change()
  }

  end(): void {
    this.#ended.abort()
    this.#change()
  }

  enter(): void {
    this.#running++
  }

  leave(): void {
    this.#running--
    if (this.#running === 0) this.#change()
  }

  /** Wakes everything that waits, to look again. */
  wake(): void {
    this.#change()
  }

  /** Resolves with false if the gate has ended. */
  async waitUntilOpen(): Promise<boolean> {
    while (this.#isClosed && !this.isEnded) await this.#changed.promise
    return !this.isEnded
  }

  async waitUntilIdle(): Promise<void> {
    while (this.#running > 0) await this.#changed.promise
  }

  /** Resolves at the time, or when something changes. */
  async waitUntil(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const elapsed = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(Math.max(ms, 0), timerMsMax))
    })
    await Promise.race([elapsed, this.#changed.promise])
    clearTimeout(timer)
  }

  waitForChange(): Promise<void> {
    return this.#changed.promise
  }

  #change(): void {
    const { resolve } = this.#changed
    this.#changed = createDeferred()
    resolve()
  }
}

const timerMsMax = 2 ** 31 - 1
