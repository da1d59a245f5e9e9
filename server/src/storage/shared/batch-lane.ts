/**
 * Collects concurrent requests and handles them in batches: the requests that arrive while a batch is written
 * form the next one (group commit).
 *
 * Up to `batchesMax` batches are in progress at once, so that one is prepared or answered while another is
 * written. No batch may take all requests then: its callers would all get their answers, and send their next
 * requests, at the same time, and from then on there would be only one batch. So each batch takes its share
 * of the requests, unless they are too few to divide.
 */
import { isCallersFault } from '../../errors.ts'

export type HandleBatch<Request> = (batch: readonly Request[]) => Promise<void>
export type LaneOptions = Readonly<{
  /** The largest weight of a batch. A single request may be heavier. */
  weightMax: number
  /** With 1, a batch starts when the one before it has ended. */
  batchesMax: number
}>

/** Requests are not divided into batches that are smaller than this: it would cost more than it saves. */
const shareMin = 64

export class BatchLane<Request extends { readonly weight: number }> {
  readonly #handle: HandleBatch<Request>
  readonly #options: LaneOptions
  #waiting: Request[] = []
  #waitingWeight = 0
  #inFlight = 0
  #inFlightWeight = 0
  readonly #batches = new Set<Promise<void>>()
  #isHeld = false
  #isStarting = false

  /** `handle` settles every request of the batch, and never rejects. */
  constructor(options: LaneOptions, handle: HandleBatch<Request>) {
    this.#options = options
    this.#handle = handle
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

  /** Removes a waiting request. False: it is no longer waiting. */
  remove(request: Request): boolean {
    const at = this.#waiting.indexOf(request)
    if (at < 0) return false
    this.#waiting.splice(at, 1)
    this.#waitingWeight -= request.weight
    return true
  }

  /** Removes and returns the waiting requests that match. */
  removeWhere(matches: (request: Request) => boolean): Request[] {
    const removed: Request[] = []
    this.#waiting = this.#waiting.filter((request) => {
      if (!matches(request)) return true
      removed.push(request)
      return false
    })
    this.#waitingWeight -= sumWeights(removed)
    return removed
  }

  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    this.#start()
  }

  /** Handles these requests in order, also while the lane is held. Resolves when they are done. */
  async runInOrder(requests: readonly Request[]): Promise<void> {
    let rest = requests
    while (rest.length > 0) {
      const batch = rest.slice(0, countWithin(rest, this.#options.weightMax))
      rest = rest.slice(batch.length)
      await this.#run(batch)
    }
  }

  /** Removes and returns all waiting requests. */
  drain(): Request[] {
    this.#waitingWeight = 0
    return this.#waiting.splice(0)
  }

  /** Resolves when the requests that were added until now are done, or held. */
  async waitUntilIdle(): Promise<void> {
    while (this.#isStarting || this.#batches.size > 0) {
      await Promise.all(this.#batches)
      await Promise.resolve()
    }
  }

  #start(): void {
    if (this.#isStarting || !this.#isReady()) return
    this.#isStarting = true
    // Requests of the same tick of the event loop share a batch.
    void Promise.resolve().then(() => {
      this.#isStarting = false
      while (this.#isReady()) void this.#run(this.#take())
    })
  }

  #isReady(): boolean {
    return this.#waiting.length > 0 && !this.#isHeld && this.#batches.size < this.#options.batchesMax
  }

  #run(batch: readonly Request[]): Promise<void> {
    const weight = sumWeights(batch)
    this.#inFlight += batch.length
    this.#inFlightWeight += weight
    const running = this.#handle(batch).then(() => {
      this.#inFlight -= batch.length
      this.#inFlightWeight -= weight
      this.#batches.delete(running)
      this.#start()
    })
    this.#batches.add(running)
    return running
  }

  #take(): Request[] {
    const { weightMax, batchesMax } = this.#options
    const share = Math.ceil((this.#waitingWeight + this.#inFlightWeight) / batchesMax)
    const count = countWithin(this.#waiting, Math.min(weightMax, Math.max(share, shareMin)))
    const batch = this.#waiting.splice(0, count)
    this.#waitingWeight -= sumWeights(batch)
    return batch
  }
}

/**
 * For a batch that the store rejected: one bad request rejects all of them, so if the error is a caller's
 * fault, each request is handled alone and gets its own answer. Returns false, and does nothing, if that
 * would not help.
 */
export async function handleOneByOne<Request>(
  batch: readonly Request[],
  error: unknown,
  handleOne: (request: Request) => Promise<void>,
): Promise<boolean> {
  if (batch.length <= 1 || !isCallersFault(error)) return false
  for (const request of batch) await handleOne(request)
  return true
}

/** How many requests from the start have at most `weightMax` together; at least one. */
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

function sumWeights(requests: readonly { readonly weight: number }[]): number {
  let sum = 0
  for (const { weight } of requests) sum += weight
  return sum
}
