/** The push consumers of the store, kept current: those that changed are read again. */
import { randomBytes } from 'node:crypto'
import { addDuration, type Clock, type Instant, usPerSecond } from '../../../core/time/instant.ts'
import { newDelivery } from '../../../core/webhook/delivery/consumer-delivery.ts'
import { createSigningSecret } from '../../../core/webhook/signature.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { StoredDelivery } from '../../../storage/contract/deliveries.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import { ConsumerLane } from './consumer-lane.ts'

export type RegistryParts = Readonly<{
  storage: () => Pick<
    StoreReads,
    'listDeliveries' | 'getDelivery' | 'listConsumerCounts' | 'listDeliveryWriters'
  >
  engine: () => Pick<Engine, 'write'>
  clock: Clock
  /** The name of this server in the figures of deliveries. */
  serverId: string
}>

/** `changed_at` has whole seconds, and a transaction can commit some time after its time. */
const overlapUs = 10 * usPerSecond
/** After this time all consumers are read, to find those that were deleted. */
const fullReadMs = 60_000

/** A server that has pushed nothing for this long has no share of the limits. */
const serverUs = 120 * usPerSecond

export class LaneRegistry {
  readonly #parts: RegistryParts
  readonly #byQueue = new Map<string, ConsumerLane>()
  /** Consumers that were deleted or are pulled now, and since when (performance.now). */
  readonly #removed = new Map<ConsumerLane, number>()
  #readAt: Instant | undefined
  #fullReadAtMs = 0
  #reading: Promise<void> | undefined
  #isReadWanted = false
  #servers = 1

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  get lanes(): Iterable<ConsumerLane> {
    return this.#byQueue.values()
  }

  /** The jobs of these go back to the store: another server, or a pull consumer, gets them. */
  get removedLanes(): Iterable<ConsumerLane> {
    return this.#removed.keys()
  }

  get size(): number {
    return this.#byQueue.size
  }

  /** The servers that share the limits of the consumers. */
  get servers(): number {
    return this.#servers
  }

  get(queue: string): ConsumerLane | undefined {
    return this.#byQueue.get(queue)
  }

  /** Reads what changed since the last call. A call during a read makes it read again. */
  refresh(isFull = false): Promise<void> {
    if (isFull) this.#fullReadAtMs = 0
    this.#isReadWanted = true
    this.#reading ??= this.#readUntilCurrent().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readUntilCurrent(): Promise<void> {
    while (this.#isReadWanted) {
      this.#isReadWanted = false
      await this.#read()
    }
  }

  async #read(): Promise<void> {
    const { storage, clock } = this.#parts
    const now = clock.now()
    const isFull = this.#readAt === undefined || performance.now() - this.#fullReadAtMs > fullReadMs
    const startedMs = performance.now()
    const query =
      isFull || this.#readAt === undefined ? {} : { changedSince: addDuration(this.#readAt, -overlapUs) }
    const stored = await storage().listDeliveries(query)
    this.#readAt = now
    if (isFull) this.#removeOthers(stored, startedMs)
    for (const each of stored) this.#put(each, now)
    // A change during this read is in the next one.
    if (!this.#isReadWanted) for (const lane of this.#byQueue.values()) lane.isStale = false
    await this.#createSecrets(
      stored.filter(({ secrets, consumer }) => secrets === null && consumer.type === 'push'),
    )
  }

  /** `stored`: all push consumers. */
  #removeOthers(stored: readonly StoredDelivery[], startedMs: number): void {
    this.#fullReadAtMs = startedMs
    const queues = new Set(stored.map(({ consumer }) => consumer.queue))
    for (const queue of this.#byQueue.keys()) if (!queues.has(queue)) this.#remove(queue)
    for (const [lane, removedMs] of this.#removed)
      if (startedMs - removedMs > fullReadMs) this.#removed.delete(lane)
  }

  /** Reads the delivery of one consumer again: another server has changed it. */
  async reload(lane: ConsumerLane): Promise<void> {
    const { storage, clock } = this.#parts
    const stored = await storage().getDelivery(lane.consumer.channelId, lane.consumer.id)
    if (stored === null) this.#remove(lane.consumer.queue)
    else this.#put(stored, clock.now())
  }

  /** Consumers with jobs that wait are asked for them again, even if an announcement was lost. */
  async findWaiting(): Promise<void> {
    for (const { consumer, queued } of await this.#parts.storage().listConsumerCounts()) {
      const lane = this.#byQueue.get(consumer.queue)
      if (lane !== undefined && queued > 0) lane.mayHaveJobs = true
    }
  }

  /** Counts the servers that pushed in the last minutes, with this one. */
  async countServers(): Promise<void> {
    const { storage, clock, serverId } = this.#parts
    const since = addDuration(clock.now(), -serverUs)
    const writers = await storage().listDeliveryWriters({ since })
    this.#servers = new Set([...writers, serverId]).size
    for (const lane of this.lanes) lane.servers = this.#servers
  }

  #put(stored: StoredDelivery, now: Instant): void {
    const { consumer } = stored
    const lane = this.#byQueue.get(consumer.queue)
    if (consumer.type !== 'push') this.#remove(consumer.queue)
    else if (lane === undefined) this.#byQueue.set(consumer.queue, this.#createLane(stored, now))
    else lane.update(stored, now)
  }

  /** Jobs can still be on their way into the lane, from the store or with their messages. */
  #remove(queue: string): void {
    const lane = this.#byQueue.get(queue)
    if (lane === undefined) return
    this.#byQueue.delete(queue)
    lane.isRemoved = true
    this.#removed.set(lane, performance.now())
  }

  #createLane(stored: StoredDelivery, now: Instant): ConsumerLane {
    const lane = new ConsumerLane(stored, now)
    lane.servers = this.#servers
    return lane
  }

  /** Every push is signed, so a new consumer gets a secret before its first push. */
  async #createSecrets(stored: readonly StoredDelivery[]): Promise<void> {
    if (stored.length === 0) return
    const { engine, clock } = this.#parts
    for (const { consumer } of stored) {
      const lane = this.#byQueue.get(consumer.queue)
      if (lane !== undefined) lane.isStale = true
    }
    await engine().write(
      stored.map(({ consumer, version, delivery }) => ({
        op: 'put-delivery' as const,
        consumer: consumer.number,
        version,
        document: delivery ?? newDelivery,
        secrets: { current: createSigningSecret(randomBytes(24)), previous: null },
        now: clock.now(),
      })),
    )
    // The secret that is stored may be one that another server created at the same time.
    this.#isReadWanted = true
  }
}
