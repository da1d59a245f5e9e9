/**
 * Holds a queue for tests: requests are accepted and counted, but none is processed until the queue is
 * released. Then they are processed in order of arrival, whatever their kind. A runtime creates its hold
 * when it is first held, so that a queue that is never held does not pay for it.
 */
import type { BatchLane } from '../../storage/shared/batch-lane.ts'
import { type RequestKind, splitIntoRuns } from '../leases/arrival-order.ts'
import type { LeaseDispatcher } from '../leases/lease-dispatcher.ts'
import type { LeaseWaiters } from '../leases/lease-waiters.ts'

type Arrived = Readonly<{ arrival: number; weight: number }>
/** A lane of requests of any kind. */
export type HeldLane = Readonly<{ take(): RequestKind; hold(isHeld: boolean): void }>

export class QueueHold {
  readonly #lanes: readonly HeldLane[]
  readonly #waiters: LeaseWaiters
  readonly #dispatcher: LeaseDispatcher
  #isHeld = false
  #isReleasing = false
  #releasing: Promise<void> = Promise.resolve()

  constructor(lanes: readonly HeldLane[], waiters: LeaseWaiters, dispatcher: LeaseDispatcher) {
    this.#lanes = lanes
    this.#waiters = waiters
    this.#dispatcher = dispatcher
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  hold(isHeld: boolean): void {
    const wasHeld = this.#isHeld
    this.#isHeld = isHeld
    if (isHeld) {
      if (!this.#isReleasing) this.#dispatcher.arrivalMax = 0
      for (const lane of this.#lanes) lane.hold(true)
    } else if (wasHeld && !this.#isReleasing) this.#releasing = this.#release()
  }

  /** Resolves when no requests are being released. */
  waitUntilReleased(): Promise<void> {
    return this.#releasing
  }

  async #release(): Promise<void> {
    this.#isReleasing = true
    this.#dispatcher.arrivalMax = 0
    // Requests that arrive in the meantime are processed after these, unless the queue is held again.
    while (!this.#isHeld) {
      const runs = splitIntoRuns(this.#take())
      if (runs.length === 0) break
      for (const { arrival, process } of runs) {
        await process()
        this.#dispatcher.arrivalMax = arrival
        await this.#dispatcher.serveNow()
      }
    }
    this.#isReleasing = false
    // The queue may be held again by now.
    this.#dispatcher.arrivalMax = this.#isHeld ? 0 : Number.POSITIVE_INFINITY
    for (const lane of this.#lanes) lane.hold(this.#isHeld)
    this.#dispatcher.wake()
  }

  #take(): RequestKind[] {
    const arrivals = this.#waiters.listArrivalsAfter(this.#dispatcher.arrivalMax)
    // Leases stay with the waiters, and are served once `arrivalMax` reaches them.
    return [...this.#lanes.map((lane) => lane.take()), { arrivals, process: async () => {} }]
  }
}

export function toHeldLane<R extends Arrived>(lane: BatchLane<R>): HeldLane {
  return {
    take: () => {
      const requests = lane.drain()
      const arrivals = requests.map(({ arrival }) => arrival)
      return { arrivals, process: (from, to) => lane.runInOrder(requests.slice(from, to)) }
    },
    hold: (isHeld) => lane.hold(isHeld),
  }
}
