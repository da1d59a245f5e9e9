/**
 * Leases notifications from the system queue like any worker, sends them, and completes or retries them.
 *
 * - If this server dies after a message was sent and before its item is completed, the lease ends and another
 *   server sends the message again, with the same id (at least once).
 * - Channels do not wait for each other. Within a channel, messages go in order (plan-order.ts).
 */
import { randomUUID } from 'node:crypto'
import { planOrder, type QueuedNotification } from '../../../core/alerts/delivery/plan-order.ts'
import { decodeMessage, type QueuedMessage } from '../../../core/alerts/notification-json.ts'
import type { ItemId } from '../../../core/ids/ids.ts'
import type { Leased } from '../../../core/items/item.ts'
import type { Clock, Instant } from '../../../core/time/instant.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import { alertPartition, alertQueue } from './alert-queue.ts'
import type { LaneItem, LaneRunner } from './lane-runner.ts'

export type DelivererParts = Readonly<{
  engine: () => Engine
  storage: () => Pick<StoreReads, 'listItems' | 'getQueue'>
  clock: Clock
  lanes: LaneRunner
  /** Notifications that this server has leased at the same time. */
  parallelMax: number
  /** How long to wait before the queue is looked for again if it does not exist. */
  absentMs: number
  /** The queue does not exist. */
  onAbsent(): void
  onError(error: unknown): void
}>

export interface Deliverer {
  start(): void
  /** The queue was created. */
  wake(): void
  /** Ends the attempts in progress after `graceMs`, and gives their notifications back. */
  stop(graceMs: number): Promise<void>
}

const leaseMs = 20_000
const errorPauseMs = 1_000
const listedPerRead = 1_000
/** With more, the order is only kept among the oldest ones. */
const listedMax = 20_000

export function createDeliverer(parts: DelivererParts): Deliverer {
  return new QueueDeliverer(parts)
}

class QueueDeliverer implements Deliverer {
  readonly #parts: DelivererParts
  readonly #clientId = `alerts-${randomUUID()}`
  readonly #leasing = new AbortController()
  readonly #running = new Set<Promise<void>>()
  #leasedCount = 0
  /** The queue existed when it was last used. A lease of a missing queue would be traced as an error. */
  #isQueueKnown = false
  /** The code of the last error, so that an outage is logged once and not every second. */
  #reported: string | undefined
  #wakeUp: () => void = () => {}
  #whenEnded: Promise<void> | undefined

  constructor(parts: DelivererParts) {
    this.#parts = parts
  }

  start(): void {
    this.#whenEnded ??= this.#loop()
  }

  wake(): void {
    this.#wakeUp()
  }

  async stop(graceMs: number): Promise<void> {
    this.#leasing.abort()
    this.#wakeUp()
    const timer = setTimeout(() => this.#parts.lanes.abort(), graceMs)
    await this.#whenEnded
    await Promise.all(this.#running)
    clearTimeout(timer)
  }

  async #loop(): Promise<void> {
    while (!this.#leasing.signal.aborted) {
      if (this.#leasedCount >= this.#parts.parallelMax) {
        await this.#pause(errorPauseMs)
        continue
      }
      try {
        await this.#lease()
      } catch (error) {
        if (!this.#leasing.signal.aborted) await this.#follow(error)
      }
    }
  }

  async #lease(): Promise<void> {
    const { engine, storage, parallelMax, onAbsent, absentMs } = this.#parts
    if (!this.#isQueueKnown && (await storage().getQueue(alertQueue)) === null) {
      onAbsent()
      await this.#pause(absentMs)
      return
    }
    this.#isQueueKnown = true
    const countMax = parallelMax - this.#leasedCount
    const options = { clientId: this.#clientId, countMax, timeoutMs: leaseMs, signal: this.#leasing.signal }
    const { items } = await engine().lease(alertQueue, options)
    this.#reported = undefined
    for (const lane of await planLanes(this.#parts, items)) this.#startLane(lane)
  }

  #startLane(items: readonly LaneItem[]): void {
    const { lanes, onError } = this.#parts
    this.#leasedCount += items.length
    const lane = lanes
      .run(items)
      .catch(onError)
      .finally(() => {
        this.#leasedCount -= items.length
        this.#running.delete(lane)
        this.#wakeUp()
      })
    this.#running.add(lane)
  }

  async #follow(error: unknown): Promise<void> {
    const { onAbsent, onError, absentMs } = this.#parts
    const code = error instanceof KnownError ? error.code : undefined
    if (code === 'LEASE_TIMEOUT') return
    const isAbsent = code === 'QUEUE_NOT_FOUND' || code === 'QUEUE_SHUTTING_DOWN'
    if (isAbsent) {
      this.#isQueueKnown = false
      onAbsent()
    } else if (code === undefined || code !== this.#reported) onError(error)
    this.#reported = isAbsent ? undefined : code
    await this.#pause(isAbsent ? absentMs : errorPauseMs)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wakeUp = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** Gives back what has to wait for an older notification, and what is no notification. */
async function planLanes(
  { engine, storage, clock, onError }: DelivererParts,
  items: readonly Leased[],
): Promise<readonly (readonly LaneItem[])[]> {
  const decoded: LaneItem[] = []
  const malformed: Leased[] = []
  for (const item of items) {
    const message = decodeMessage(item.payload)
    if (message === undefined) malformed.push(item)
    else decoded.push(toLaneItem(item, message))
  }
  const queued = await listQueued(storage())
  const { lanes, postponed } = planOrder(decoded, queued, clock.now())
  const error = {
    errorCode: 'malformed',
    errorClass: 'MalformedNotification',
    message: 'this is no notification',
  }
  const returned = [
    ...malformed.map(({ id }) => ({ id, isDead: true, error, availableAt: null })),
    ...postponed.map(({ item, until }) => ({ id: item.id, isDead: false, error: null, availableAt: until })),
  ]
  if (returned.length > 0) {
    // Without this write the leases end, and the items are leased again.
    const retry = { op: 'retry', queue: alertQueue, partition: alertPartition, items: returned } as const
    await engine()
      .write([{ ...retry, now: clock.now() }])
      .catch(onError)
  }
  return lanes
}

function toLaneItem(item: Leased, message: QueuedMessage): LaneItem {
  return {
    id: item.id,
    rootId: item.rootId,
    channel: message.channel,
    message,
    queuedAt: message.queuedAt ?? item.createdAt,
    leaseDeadline: item.lease.deadline,
  }
}

async function listQueued(storage: Pick<StoreReads, 'listItems'>): Promise<readonly QueuedNotification[]> {
  const queued: QueuedNotification[] = []
  let from: Readonly<{ id: ItemId; isIncluded: boolean }> | undefined
  while (queued.length < listedMax) {
    const items = await storage.listItems({
      queue: alertQueue,
      countMax: listedPerRead,
      hasBytes: false,
      ...(from !== undefined && { from }),
    })
    for (const item of items) {
      const availableAt: Instant | null = item.state === 'waiting' ? item.availableAt : null
      queued.push({ rootId: item.rootId, channel: item.reference, availableAt })
    }
    const last = items.at(-1)
    if (last === undefined || items.length < listedPerRead) break
    from = { id: last.id, isIncluded: false }
  }
  return queued
}
