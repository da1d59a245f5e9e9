/**
 * A lane gathers concurrent requests and works them off in batches, one batch at a time: what arrives
 * while a batch is on its way to the disk goes together in the next one (group commit).
 */
export type Work<Request> = (batch: readonly Request[]) => Promise<void>

export class Lane<Request extends { readonly weight: number }> {
  readonly #work: Work<Request>
  readonly #weightMax: number
  #waiting: Request[] = []
  #inFlight = 0
  #isHeld = false
  #isBusy = false
  #run: Promise<void> = Promise.resolve()

  /** `work` settles every request of the batch itself, and never rejects. */
  constructor(weightMax: number, work: Work<Request>) {
    this.#weightMax = weightMax
    this.#work = work
  }

  get waiting(): number {
    return this.#waiting.length
  }

  get inFlight(): number {
    return this.#inFlight
  }

  add(request: Request): void {
    this.#waiting.push(request)
    this.#start()
  }

  /** True when it was still waiting: then it will not be worked on. */
  withdraw(request: Request): boolean {
    const at = this.#waiting.indexOf(request)
    if (at >= 0) this.#waiting.splice(at, 1)
    return at >= 0
  }

  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    this.#start()
  }

  /** Takes out everything that waits. */
  drain(): Request[] {
    return this.#waiting.splice(0)
  }

  /** Resolves when what was added by now is done, or held. */
  whenIdle(): Promise<void> {
    return this.#run
  }

  #start(): void {
    if (this.#isBusy || this.#isHeld || this.#waiting.length === 0) return
    this.#isBusy = true
    // Those of the same turn of the event loop go together.
    this.#run = Promise.resolve().then(() => this.#workOff())
  }

  async #workOff(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#isHeld) {
      const batch = this.#take()
      this.#inFlight = batch.length
      await this.#work(batch)
      this.#inFlight = 0
    }
    this.#isBusy = false
  }

  #take(): Request[] {
    let weight = 0
    let count = 0
    for (const request of this.#waiting) {
      weight += request.weight
      if (count > 0 && weight > this.#weightMax) break
      count++
    }
    if (count === this.#waiting.length) {
      const all = this.#waiting
      this.#waiting = []
      return all
    }
    return this.#waiting.splice(0, count)
  }
}
