/**
 * A lane gathers concurrent requests and works them off in batches: what arrives while a batch is on its
 * way to the disk goes together in the next one (group commit).
 *
 * Up to `batchesMax` are under way at once, so that one is prepared or answered while another is being
 * written. For that nobody may take everything: callers that all wait for one batch come back all
 * together, and from then on there is only ever one. So each batch takes its share of what there is to
 * do, unless that is too little to be worth dividing.
 */
export type Work<Request> = (batch: readonly Request[]) => Promise<void>
export type LaneOptions = Readonly<{
  /** A batch is not heavier, unless a single request is. */
  weightMax: number
  /** 1: batches follow each other. */
  batchesMax: number
}>

/** What is lighter costs more by being written apart than it gains. */
const shareMin = 64

export class BatchLane<Request extends { readonly weight: number }> {
  readonly #work: Work<Request>
  readonly #options: LaneOptions
  #waiting: Request[] = []
  #waitingWeight = 0
  #inFlight = 0
  #inFlightWeight = 0
  readonly #batches = new Set<Promise<void>>()
  #isHeld = false
  #isStarting = false

  /** `work` settles every request of the batch itself, and never rejects. */
  constructor(options: LaneOptions, work: Work<Request>) {
    this.#options = options
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
    this.#waitingWeight += request.weight
    this.#start()
  }

  /** True when it was still waiting: then it will not be worked on. */
  remove(request: Request): boolean {
    const at = this.#waiting.indexOf(request)
    if (at < 0) return false
    this.#waiting.splice(at, 1)
    this.#waitingWeight -= request.weight
    return true
  }

  /** Takes out those that wait and are over: they will not be worked on. */
  removeWhere(isOver: (request: Request) => boolean): Request[] {
    const over: Request[] = []
    this.#waiting = this.#waiting.filter((request) => {
      if (!isOver(request)) return true
      over.push(request)
      return false
    })
    this.#waitingWeight -= weightOf(over)
    return over
  }

  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    this.#start()
  }

  /** Works these off in order, though it is held: they were taken out before. Resolves when they are done. */
  async runInOrder(requests: readonly Request[]): Promise<void> {
    let rest = requests
    while (rest.length > 0) {
      const batch = rest.slice(0, countWithin(rest, this.#options.weightMax))
      rest = rest.slice(batch.length)
      await this.#workOff(batch)
    }
  }

  /** Takes out everything that waits. */
  drain(): Request[] {
    this.#waitingWeight = 0
    return this.#waiting.splice(0)
  }

  /** Resolves when what was added by now is done, or held. */
  async whenIdle(): Promise<void> {
    while (this.#isStarting || this.#batches.size > 0) {
      await Promise.all(this.#batches)
      await Promise.resolve()
    }
  }

  #start(): void {
    if (this.#isStarting || !this.#isReady()) return
    this.#isStarting = true
    // Those of the same turn of the event loop go together.
    void Promise.resolve().then(() => {
      this.#isStarting = false
      while (this.#isReady()) void this.#workOff(this.#take())
    })
  }

  #isReady(): boolean {
    return this.#waiting.length > 0 && !this.#isHeld && this.#batches.size < this.#options.batchesMax
  }

  #workOff(batch: readonly Request[]): Promise<void> {
    const weight = weightOf(batch)
    this.#inFlight += batch.length
    this.#inFlightWeight += weight
    const work = this.#work(batch).then(() => {
      this.#inFlight -= batch.length
      this.#inFlightWeight -= weight
      this.#batches.delete(work)
      this.#start()
    })
    this.#batches.add(work)
    return work
  }

  #take(): Request[] {
    const { weightMax, batchesMax } = this.#options
    const share = Math.ceil((this.#waitingWeight + this.#inFlightWeight) / batchesMax)
    const count = countWithin(this.#waiting, Math.min(weightMax, Math.max(share, shareMin)))
    const batch = this.#waiting.splice(0, count)
    this.#waitingWeight -= weightOf(batch)
    return batch
  }
}

/** How many of the first weigh no more than that together; at least one. */
function countWithin(requests: readonly { readonly weight: number }[], weightMax: number): number {
  let weight = 0
  let count = 0
  for (const request of requests) {
    weight += request.weight
    if (count > 0 && weight > weightMax) break
    count++
  }
  return count
}

function weightOf(requests: readonly { readonly weight: number }[]): number {
  let sum = 0
  for (const { weight } of requests) sum += weight
  return sum
}
