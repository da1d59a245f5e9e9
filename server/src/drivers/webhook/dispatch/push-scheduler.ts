/**
 * Decides whose push starts next.
 *
 * - Consumers take turns.
 * - A consumer may have as many pushes in progress as there are free places. So a single consumer uses half
 *   of all places, two use a third each, and there is always a free place for a consumer that had none.
 * - Consumers whose pushes are slow share half of the places, so that consumers that hang cannot slow down
 *   those that answer, however many hang.
 * - A consumer has its own limits: parallel pushes, pushes per second, and the bytes of its payloads.
 */
import type { Instant } from '../../../core/time/instant.ts'
import { readDeliveryStatus } from '../../../core/webhook/delivery/consumer-delivery.ts'
import type { ConsumerLane, ReadyJob } from './consumer-lane.ts'

/** How many consumers one search looks at, so that a thousand blocked ones do not cost time at each push. */
const examinedMax = 64

export class PushScheduler {
  readonly parallelMax: number
  /** Pushes in progress. */
  inFlight = 0
  /** Pushes in progress of slow consumers, counted at each tick. */
  slowInFlight = 0
  /** Consumers with ready jobs, in turn. */
  #turns = new Set<ConsumerLane>()

  constructor(parallelMax: number) {
    this.parallelMax = parallelMax
  }

  get free(): number {
    return this.parallelMax - this.inFlight
  }

  /** The consumer has ready jobs. */
  add(lane: ConsumerLane): void {
    if (lane.ready.length > 0) this.#turns.add(lane)
  }

  remove(lane: ConsumerLane): void {
    this.#turns.delete(lane)
  }

  /** The next push; undefined: none may start now. The caller counts it in `inFlight`. */
  next(now: Instant): Readonly<{ lane: ConsumerLane; job: ReadyJob }> | undefined {
    let examined = 0
    for (const lane of this.#turns) {
      if (this.free <= 0 || examined++ >= examinedMax) return undefined
      this.#turns.delete(lane)
      const job = lane.ready[0]
      if (job === undefined) continue
      this.#turns.add(lane)
      if (!this.canStart(lane) || !lane.tryTakeToken(now)) continue
      lane.ready.shift()
      return { lane, job }
    }
    return undefined
  }

  /** How many pushes the consumer may have in progress now, apart from its pushes per second. */
  limitOf(lane: ConsumerLane): number {
    const { breaker } = lane.delivery
    const status = readDeliveryStatus(lane.delivery)
    if (lane.isStale || lane.isRemoved || status === 'paused' || status === 'disabled') return 0
    if (breaker.state !== 'closed') return lane.isProbing ? 1 : 0
    return Math.min(lane.parallelMax ?? this.parallelMax, this.parallelMax)
  }

  canStart(lane: ConsumerLane): boolean {
    const own = lane.inFlight.size
    if (own >= this.limitOf(lane) || own >= this.free) return false
    return !lane.isSlow || this.slowInFlight < this.parallelMax / 2
  }
}
