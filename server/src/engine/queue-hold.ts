/**
 * Holding a queue: requests are taken and counted, and none is processed until it is released. Then what was held is
 * done in the order in which it came, whatever it is: each kind by itself would overtake the others.
 */
import type { BatchLane } from '../storage/shared/batch-lane.ts'
import { type Kind, runsOf } from './arrival-order.ts'
import type { LeaseWaiters } from './lease-waiters.ts'

type Waiting = Readonly<{ arrival: number; weight: number }>
/** A lane, whatever its requests are. */
type HeldLane = Readonly<{ take(): Kind; hold(isHeld: boolean): void }>

export class Held {
  readonly #lanes: readonly HeldLane[]
  readonly #waiters: LeaseWaiters
  readonly #serve: () => Promise<void>
  readonly #onReleased: () => void
  #isHeld = false
  #isReleasing = false
  /** While what was held is being released: leases that came later wait for their turn. */
  #servedUpTo = 0
  #releasing: Promise<void> = Promise.resolve()

  /** `serve`: serves the leases whose turn has come, with what there is for them then. */
  constructor(
    lanes: readonly HeldLane[],
    waiters: LeaseWaiters,
    serve: () => Promise<void>,
    onReleased: () => void,
  ) {
    this.#lanes = lanes
    this.#waiters = waiters
    this.#serve = serve
    this.#onReleased = onReleased
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  /** Leases that came later are not served now. */
  get arrivalMax(): number {
    if (this.#isReleasing) return this.#servedUpTo
    return this.#isHeld ? 0 : Number.POSITIVE_INFINITY
  }

  hold(isHeld: boolean): void {
    const wasHeld = this.#isHeld
    this.#isHeld = isHeld
    if (isHeld) for (const lane of this.#lanes) lane.hold(true)
    else if (wasHeld && !this.#isReleasing) this.#releasing = this.#release()
  }

  /** Resolves when nothing is being released. */
  whenReleased(): Promise<void> {
    return this.#releasing
  }

  async #release(): Promise<void> {
    this.#isReleasing = true
    this.#servedUpTo = 0
    // What comes meanwhile comes after; unless it is held again.
    while (!this.#isHeld) {
      const runs = runsOf(this.#take())
      if (runs.length === 0) break
      for (const { arrival, work } of runs) {
        await work()
        this.#servedUpTo = arrival
        await this.#serve()
      }
    }
    this.#isReleasing = false
    // Held again meanwhile, it stays so.
    for (const lane of this.#lanes) lane.hold(this.#isHeld)
    this.#onReleased()
  }

  #take(): Kind[] {
    const arrivals = this.#waiters.arrivalsAfter(this.#servedUpTo)
    // Leases stay where they are, and are served once their turn has come.
    return [...this.#lanes.map((lane) => lane.take()), { arrivals, work: async () => {} }]
  }
}

export function heldLane<R extends Waiting>(lane: BatchLane<R>): HeldLane {
  return {
    take: () => {
      const requests = lane.drain()
      const arrivals = requests.map(({ arrival }) => arrival)
      return { arrivals, work: (from, to) => lane.runInOrder(requests.slice(from, to)) }
    },
    hold: (isHeld) => lane.hold(isHeld),
  }
}
