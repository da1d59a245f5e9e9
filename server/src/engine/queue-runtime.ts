/**
 * A room is what this server holds of one queue: its policy, the requests that are under way (`producing.ts`,
 * `settling.ts`), the leases that wait (`lease-waiters.ts`, served by `dealer.ts`), and how many items each partition has
 * for them (`stock.ts`).
 */
import type { Queue } from '../core/queue.ts'
import { KnownError } from '../errors.ts'
import type { Complete, Extend, ItemChange, NewItem, Retry } from '../storage/contract/items.ts'
import { Stock } from './available-counts.ts'
import { CallLane } from './call-lane.ts'
import type { CallOptions, LeasedItems, LeaseOptions, ProducedItems, ProduceOptions } from './engine.ts'
import { Dealer } from './lease-dispatcher.ts'
import { LeaseWaiters } from './lease-waiters.ts'
import { Held, heldLane } from './queue-hold.ts'
import type { RoomParts } from './queue-runtime-parts.ts'
import { type Producing, writeProduces } from './write-produces.ts'
import { type Completing, type Returning, writeCompletes, writeReturns } from './write-settles.ts'

const batchItemsMax = 2_000
/** One is written while the answers to the other go out, and their callers come back. */
const batchesMax = 2
const forever = Number.POSITIVE_INFINITY
/** An empty stock is believed for so long: what another server said of its items may have been lost. */
const emptyMsMax = 1_000

export class Room {
  queue: Queue
  readonly #parts: RoomParts
  readonly #stock: Stock
  readonly #produces: CallLane<Producing>
  readonly #completes: CallLane<Completing>
  readonly #returns: CallLane<Returning>
  readonly #leases: LeaseWaiters
  readonly #dealer: Dealer
  readonly #held: Held
  #arrivals = 0
  /** Another server put something in since the store was looked at. */
  #isStale = false
  #lookedAt = performance.now()
  #looking: Promise<void> | undefined
  #closed: KnownError | undefined

  constructor(queue: Queue, available: readonly number[], parts: RoomParts) {
    this.queue = queue
    this.#parts = parts
    this.#stock = new Stock(queue.partitions, available)
    const onReady = () => {
      parts.onAvailable(this.queue.name)
      this.wake()
    }
    const options = { weightMax: batchItemsMax, batchesMax }
    this.#produces = new CallLane(options, (batch) =>
      writeProduces(batch, this.queue, this.#stock, parts, onReady),
    )
    this.#completes = new CallLane({ ...options, batchesMax: 1 }, (batch) => writeCompletes(batch, parts))
    this.#returns = new CallLane({ ...options, batchesMax: 1 }, (batch) => writeReturns(batch, parts))
    this.#leases = new LeaseWaiters(queue.name)
    this.#dealer = new Dealer(
      () => this.queue,
      this.#leases,
      this.#stock,
      parts,
      () => this.#held.arrivalMax,
    )
    this.#held = new Held(
      [heldLane(this.#produces), heldLane(this.#completes), heldLane(this.#returns)],
      this.#leases,
      () => this.#dealer.serveNow(),
      () => this.wake(),
    )
  }

  get waiting(): Readonly<{ produce: number; lease: number; complete: number; inFlight: number }> {
    return {
      produce: this.#produces.waiting,
      lease: this.#leases.size,
      complete: this.#completes.waiting + this.#returns.waiting,
      inFlight: this.#produces.inFlight + this.#completes.inFlight + this.#returns.inFlight,
    }
  }

  get hasLeasers(): boolean {
    return this.#leases.size > 0
  }

  produce(items: readonly NewItem[], options: ProduceOptions): Promise<ProducedItems> {
    const refused = this.#refusal()
    if (refused !== undefined) return Promise.reject(refused)
    return new Promise((resolve, reject) => {
      const { partition, once, timeoutMs = forever, signal } = options
      const arrival = ++this.#arrivals
      const weight = items.length
      this.#produces.call(
        { arrival, weight, timeoutMs, deadline: forever, items, partition, once, resolve, reject },
        signal,
      )
    })
  }

  complete(command: Complete, options: CallOptions): Promise<void> {
    const refused = this.#refusal()
    if (refused !== undefined) return Promise.reject(refused)
    return new Promise((resolve, reject) => {
      const { timeoutMs = forever, signal } = options
      const arrival = ++this.#arrivals
      const weight = command.ids.length
      this.#completes.call(
        { arrival, weight, timeoutMs, deadline: forever, command, resolve, reject },
        signal,
      )
    })
  }

  /** Gives items back, or holds them for longer. */
  settle(command: Retry | Extend, options: CallOptions): Promise<readonly ItemChange[]> {
    const refused = this.#refusal()
    if (refused !== undefined) return Promise.reject(refused)
    return new Promise((resolve, reject) => {
      const { timeoutMs = forever, signal } = options
      const arrival = ++this.#arrivals
      const weight = command.op === 'retry' ? command.items.length : command.ids.length
      this.#returns.call({ arrival, weight, timeoutMs, deadline: forever, command, resolve, reject }, signal)
    })
  }

  lease(options: LeaseOptions): Promise<LeasedItems> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    if (this.#held.isHeld && this.#unprocessed() >= this.#parts.requestsMax)
      return Promise.reject(this.#overloaded())
    const { clientId } = options
    if (this.#leases.has(clientId)) {
      return Promise.reject(
        new KnownError('CLIENT_ID_BUSY', `client ${clientId} waits for items of ${this.queue.name} already`),
      )
    }
    const leased = this.#leases.add(options, ++this.#arrivals)
    this.wake()
    if (this.#stock.isEmpty && this.#isLookDue()) void this.refresh().catch(this.#parts.onError)
    return leased
  }

  #isLookDue(): boolean {
    return this.#isStale || performance.now() - this.#lookedAt > emptyMsMax
  }

  /** Undefined: there is something to lease. Else resolves when what another server said is known here, too. */
  whenKnown(): Promise<void> | undefined {
    if (!this.#stock.isEmpty) return undefined
    if (this.#isStale && this.#looking === undefined) {
      this.#looking = this.refresh().finally(() => {
        this.#looking = undefined
      })
    }
    return this.#looking
  }

  /** Another server says that something changed. While nobody waits, the next one who comes will look. */
  async noticed(): Promise<void> {
    this.#isStale = true
    if (this.hasLeasers) await this.refresh()
  }

  /** Items of a partition became available by a write of another part. */
  gain(partition: number, count: number): void {
    this.#stock.gain(partition, count)
    this.wake()
  }

  /** Looks at what is really there, and what the queue is now: another server may have changed both. */
  async refresh(): Promise<void> {
    const { storage } = this.#parts
    const { name, createdAt, partitions } = this.queue
    const since = this.#stock.look()
    this.#isStale = false
    this.#lookedAt = performance.now()
    const [queue, counts] = await Promise.all([storage.getQueue(name), storage.counts({ queue: name })])
    if (queue === null || queue.createdAt !== createdAt || queue.partitions !== partitions) {
      // Who waits here waits for a queue that is gone, though one of its name may be there.
      this.#parts.onGone()
      return
    }
    this.queue = queue
    this.#stock.looked(counts, since)
    this.wake()
  }

  hold(isHeld: boolean): void {
    this.#held.hold(isHeld)
  }

  /** Refuses what waits, and resolves when what is being written is done. */
  async close(error: KnownError): Promise<void> {
    this.#closed = error
    this.#leases.refuseAll(error)
    for (const lane of this.#lanes()) for (const { reject } of lane.drain()) reject(error)
    await this.#idle()
  }

  /** Refuses new calls and leases that wait; the other calls that wait are done first. */
  async finish(error: KnownError): Promise<void> {
    if (this.#held.isHeld) return this.close(error)
    this.#closed = error
    this.#leases.refuseAll(error)
    await this.#idle()
  }

  /** Serves waiting leases if there is something for them. */
  wake(): void {
    this.#dealer.wake()
  }

  async #idle(): Promise<void> {
    await this.#held.whenReleased()
    await Promise.all([...this.#lanes().map((lane) => lane.whenIdle()), this.#dealer.whenIdle()])
    for (const lane of this.#lanes()) lane.off()
  }

  #lanes(): readonly Pick<CallLane<Producing | Completing | Returning>, 'drain' | 'whenIdle' | 'off'>[] {
    return [this.#produces, this.#completes, this.#returns]
  }

  #refusal(): KnownError | undefined {
    if (this.#closed !== undefined) return this.#closed
    return this.#unprocessed() >= this.#parts.requestsMax ? this.#overloaded() : undefined
  }

  #unprocessed(): number {
    const waiting = this.#produces.waiting + this.#completes.waiting + this.#returns.waiting
    return this.#held.isHeld ? waiting + this.#leases.size : waiting
  }

  #overloaded(): KnownError {
    return new KnownError(
      'QUEUE_OVERLOADED',
      `queue ${this.queue.name} has ${this.#parts.requestsMax} requests to do`,
    )
  }
}
