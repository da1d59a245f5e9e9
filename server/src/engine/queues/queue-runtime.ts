/**
 * The runtime of a queue is what this server keeps for it in memory: its policy, the requests in progress
 * (`write-produces.ts`, `write-settles.ts`), the waiting leases (`lease-waiters.ts`, served by
 * `lease-dispatcher.ts`), and how many items each partition has for them (`available-counts.ts`).
 */

import type { Queue } from '../../core/items/queue.ts'
import type { Instant } from '../../core/time/instant.ts'
import { KnownError } from '../../errors.ts'
import type { Complete, Extend, ItemChange, NewItem, Retry } from '../../storage/contract/items.ts'
import type { CallOptions, LeasedItems, LeaseOptions, ProducedItems, ProduceOptions } from '../engine.ts'
import { AvailableCounts } from '../leases/available-counts.ts'
import { LeaseDispatcher } from '../leases/lease-dispatcher.ts'
import { LeaseWaiters, silentMsMin } from '../leases/lease-waiters.ts'
import { CallLane } from '../writes/call-lane.ts'
import { type ProduceRequest, writeProduces } from '../writes/write-produces.ts'
import {
  type CompleteRequest,
  type SettleRequest,
  writeCompletes,
  writeSettles,
} from '../writes/write-settles.ts'
import { QueueHold, toHeldLane } from './queue-hold.ts'
import type { QueueRuntimeParts } from './queue-runtime-parts.ts'

const batchItemsMax = 2_000
/** One batch is written while the answers to the other go out and their callers return. */
const batchesMax = 2
const forever = Number.POSITIVE_INFINITY
/** How long empty counts are trusted: an announcement of another server may have been lost. */
const emptyMsMax = 1_000

export class QueueRuntime {
  queue: Queue
  readonly #parts: QueueRuntimeParts
  readonly #counts: AvailableCounts
  readonly #produces: CallLane<ProduceRequest>
  readonly #completes: CallLane<CompleteRequest>
  readonly #settles: CallLane<SettleRequest>
  readonly #waiters: LeaseWaiters
  readonly #dispatcher: LeaseDispatcher
  /** Undefined until the queue is held for the first time. */
  #hold: QueueHold | undefined
  #arrivals = 0
  #lastLeaseCallAt: Instant | null = null
  /** Another server announced items since the last refresh. */
  #isStale = false
  #refreshedAt = performance.now()
  /** When the first refresh since the last successful one started; undefined if there was none. */
  #unansweredSinceMs: number | undefined
  #hasRefreshFailed = false
  #refreshing: Promise<void> | undefined
  #closed: KnownError | undefined

  constructor(queue: Queue, available: readonly number[], parts: QueueRuntimeParts) {
    this.queue = queue
    this.#parts = parts
    this.#counts = new AvailableCounts(queue.partitions, available)
    const onReady = () => {
      parts.onAvailable(this.queue.name)
      this.#dispatcher.wake()
    }
    const options = { weightMax: batchItemsMax, batchesMax }
    this.#produces = new CallLane(options, (batch) =>
      writeProduces(batch, this.queue, this.#counts, parts, onReady),
    )
    this.#completes = new CallLane({ ...options, batchesMax: 1 }, (batch) => writeCompletes(batch, parts))
    this.#settles = new CallLane({ ...options, batchesMax: 1 }, (batch) => writeSettles(batch, parts))
    this.#waiters = new LeaseWaiters(queue.name, (nowMs) => this.#isStoreSilent(nowMs))
    this.#dispatcher = new LeaseDispatcher(() => this.queue, this.#waiters, this.#counts, parts)
  }

  get waiting(): Readonly<{ produce: number; lease: number; complete: number; inFlight: number }> {
    return {
      produce: this.#produces.waiting,
      lease: this.#waiters.size,
      complete: this.#completes.waiting + this.#settles.waiting,
      inFlight: this.#produces.inFlight + this.#completes.inFlight + this.#settles.inFlight,
    }
  }

  get hasWaitingLeases(): boolean {
    return this.#waiters.size > 0
  }

  /** When a worker last asked this server for items; now if one waits. Null: none asked since the start. */
  get lastLeaseCallAt(): Instant | null {
    return this.hasWaitingLeases ? this.#parts.clock.now() : this.#lastLeaseCallAt
  }

  produce(items: readonly NewItem[], options: ProduceOptions): Promise<ProducedItems> {
    const refusal = this.#findRefusal()
    if (refusal !== undefined) return Promise.reject(refusal)
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
    const refusal = this.#findRefusal()
    if (refusal !== undefined) return Promise.reject(refusal)
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

  /** Retries items, or extends their leases. */
  settle(command: Retry | Extend, options: CallOptions): Promise<readonly ItemChange[]> {
    const refusal = this.#findRefusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise((resolve, reject) => {
      const { timeoutMs = forever, signal } = options
      const arrival = ++this.#arrivals
      const weight = command.op === 'retry' ? command.items.length : command.ids.length
      this.#settles.call({ arrival, weight, timeoutMs, deadline: forever, command, resolve, reject }, signal)
    })
  }

  lease(options: LeaseOptions): Promise<LeasedItems> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    if (this.#hold?.isHeld && this.#countUnprocessed() >= this.#parts.requestsMax)
      return Promise.reject(this.#overloaded())
    const { clientId } = options
    if (this.#waiters.has(clientId)) {
      return Promise.reject(
        new KnownError('CLIENT_ID_BUSY', `client ${clientId} waits for items of ${this.queue.name} already`),
      )
    }
    this.#lastLeaseCallAt = this.#parts.clock.now()
    const leased = this.#waiters.add(options, ++this.#arrivals)
    this.#dispatcher.wake()
    if (this.#counts.isEmpty && this.#isRefreshDue()) void this.refresh().catch(this.#parts.onError)
    return leased
  }

  #isStoreSilent(nowMs: number): boolean {
    if (this.#unansweredSinceMs === undefined) return false
    return this.#hasRefreshFailed || nowMs - this.#unansweredSinceMs > silentMsMin
  }

  #isRefreshDue(): boolean {
    return this.#isStale || performance.now() - this.#refreshedAt > emptyMsMax
  }

  /**
   * Undefined if a lease can be served from the counts. Otherwise resolves when the items that another server
   * announced are counted here.
   */
  waitUntilCurrent(): Promise<void> | undefined {
    if (!this.#counts.isEmpty) return undefined
    if (this.#isStale && this.#refreshing === undefined) {
      this.#refreshing = this.refresh().finally(() => {
        this.#refreshing = undefined
      })
    }
    return this.#refreshing
  }

  /** Another server changed the queue. While no lease waits here, the next lease refreshes. */
  async onAnnounced(): Promise<void> {
    this.#isStale = true
    if (this.hasWaitingLeases) await this.refresh()
  }

  /** Items of a partition became available through a write of another part. */
  addAvailable(partition: number, count: number): void {
    this.#counts.add(partition, count)
    this.#dispatcher.wake()
  }

  /** Reads the queue and its counts from the store: another server may have changed both. */
  async refresh(): Promise<void> {
    const { storage } = this.#parts
    const { name, createdAt, partitions } = this.queue
    const recount = this.#counts.startRecount()
    this.#isStale = false
    this.#refreshedAt = performance.now()
    this.#unansweredSinceMs ??= this.#refreshedAt
    const [queue, counts] = await Promise.all([
      storage.getQueue(name),
      storage.readCounts({ queue: name }),
    ]).catch((error: unknown) => {
      this.#hasRefreshFailed = true
      throw error
    })
    this.#hasRefreshFailed = false
    this.#unansweredSinceMs = undefined
    if (queue === null || queue.createdAt !== createdAt || queue.partitions !== partitions) {
      // The queue was deleted, even if one with the same name was created since.
      this.#parts.onGone()
      return
    }
    this.queue = queue
    this.#counts.finishRecount(counts, recount)
    this.#dispatcher.wake()
  }

  hold(isHeld: boolean): void {
    if (this.#hold === undefined) {
      if (!isHeld) return
      const lanes = [toHeldLane(this.#produces), toHeldLane(this.#completes), toHeldLane(this.#settles)]
      this.#hold = new QueueHold(lanes, this.#waiters, this.#dispatcher)
    }
    this.#hold.hold(isHeld)
  }

  /** Rejects everything that waits, and resolves when the writes in progress are done. */
  async close(error: KnownError): Promise<void> {
    this.#closed = error
    this.#waiters.rejectAll(error)
    for (const lane of this.#lanes()) for (const { reject } of lane.drain()) reject(error)
    await this.#waitUntilIdle()
  }

  /** Rejects new calls and waiting leases, and resolves when the other calls are done. */
  async finish(error: KnownError): Promise<void> {
    if (this.#hold?.isHeld) return this.close(error)
    this.#closed = error
    this.#waiters.rejectAll(error)
    await this.#waitUntilIdle()
  }

  async #waitUntilIdle(): Promise<void> {
    await this.#hold?.waitUntilReleased()
    await Promise.all([
      ...this.#lanes().map((lane) => lane.waitUntilIdle()),
      this.#dispatcher.waitUntilIdle(),
    ])
    for (const lane of this.#lanes()) lane.stop()
  }

  #lanes(): readonly Pick<
    CallLane<ProduceRequest | CompleteRequest | SettleRequest>,
    'drain' | 'waitUntilIdle' | 'stop'
  >[] {
    return [this.#produces, this.#completes, this.#settles]
  }

  #findRefusal(): KnownError | undefined {
    if (this.#closed !== undefined) return this.#closed
    return this.#countUnprocessed() >= this.#parts.requestsMax ? this.#overloaded() : undefined
  }

  #countUnprocessed(): number {
    const waiting = this.#produces.waiting + this.#completes.waiting + this.#settles.waiting
    return this.#hold?.isHeld ? waiting + this.#waiters.size : waiting
  }

  #overloaded(): KnownError {
    return new KnownError(
      'QUEUE_OVERLOADED',
      `queue ${this.queue.name} already has ${this.#parts.requestsMax} requests in progress`,
    )
  }
}
