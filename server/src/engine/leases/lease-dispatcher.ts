/**
 * Serves the leases that wait for items of one queue: asks the store, distributes the items, and puts back
 * items for leases that have left.
 */

import type { Leased } from '../../core/items/item.ts'
import type { Queue } from '../../core/items/queue.ts'
import { isExpired } from '../../core/items/transitions.ts'
import { addDuration, type Instant } from '../../core/time/instant.ts'
import { stepBytesMax } from '../../storage/shared/byte-budget.ts'
import type { QueueRuntimeParts } from '../queues/queue-runtime-parts.ts'
import { runWhenOutcomeUnknown } from '../timing/deadline.ts'
import { type Assignment, assignItems } from './assign-items.ts'
import type { AvailableCounts, Claim } from './available-counts.ts'
import type { LeaseWaiter, LeaseWaiters } from './lease-waiters.ts'

/** The items that the store is asked for, of one partition: item number i goes to `recipients[i]`. */
type Plan = Readonly<{ claim: Claim; recipients: readonly LeaseWaiter[] }>

const itemsMaxDefault = 4_000
/**
 * How large the payloads of a batch should be in total, judged by the batch before. A hundred items of 16
 * MiB at once take longer than callers wait, again and again: a worker that leases large batches would
 * never get any.
 */
const batchBytes = stepBytesMax
const itemsMin = 4
/** One batch is written while the answers to the other go out and their callers return. */
const batchesMax = 2
/** Fewer leases are not worth dividing into two batches. */
const shareMin = 128

export class LeaseDispatcher {
  /** Leases that arrived later are not served. Infinity unless the queue is held (queue-hold.ts). */
  arrivalMax = Number.POSITIVE_INFINITY
  readonly #queue: () => Queue
  readonly #waiters: LeaseWaiters
  readonly #counts: AvailableCounts
  readonly #parts: QueueRuntimeParts
  readonly #batches = new Set<Promise<void>>()
  #itemsMax = itemsMaxDefault
  #isWaking = false
  #puttingBack: Promise<unknown> = Promise.resolve()

  constructor(queue: () => Queue, waiters: LeaseWaiters, counts: AvailableCounts, parts: QueueRuntimeParts) {
    this.#queue = queue
    this.#waiters = waiters
    this.#counts = counts
    this.#parts = parts
  }

  /** Serves waiting leases if there are items for them. */
  wake(): void {
    if (this.#isWaking || this.#waiters.size === 0 || this.#batches.size >= batchesMax) return
    if (this.#counts.isEmpty) return
    this.#isWaking = true
    // Leases that arrive in the same turn of the event loop are served together.
    void Promise.resolve().then(() => {
      this.#isWaking = false
      this.#start()
    })
  }

  /** Serves the leases up to `arrivalMax` with the items that there are now. */
  async serveNow(): Promise<void> {
    this.#start()
    while (this.#batches.size > 0) await Promise.all(this.#batches)
  }

  /** Resolves when no items are being leased or put back. */
  async waitUntilIdle(): Promise<void> {
    await Promise.all(this.#batches)
    await this.#puttingBack
  }

  #start(): void {
    while (this.#batches.size < batchesMax && this.#startBatch());
  }

  /** False if no lease waits, or there are no items. */
  #startBatch(): boolean {
    if (this.#queue().isPaused) return false
    const next = this.#waiters.takeNext(batchesMax, shareMin, this.arrivalMax, this.#counts.total)
    const assignments = this.#limit(assignItems(next, this.#counts.byPartition, this.#itemsMax))
    if (assignments.length === 0) return false
    const plans = assignments.map(({ partition, recipients }) => {
      const askedAtMs = performance.now()
      for (const waiter of recipients) {
        waiter.isAsking = true
        waiter.askedAtMs = askedAtMs
      }
      return { claim: this.#counts.claim(partition, recipients.length), recipients }
    })
    const batch = this.#lease(plans).then(() => {
      this.#batches.delete(batch)
      // Leases that arrived in the meantime, or got nothing, may be served now.
      this.wake()
    })
    this.#batches.add(batch)
    return true
  }

  async #lease(plans: readonly Plan[]): Promise<void> {
    const { writer, clock, batchMsMax } = this.#parts
    const { name, leaseTimeoutUs } = this.#queue()
    const now = clock.now()
    const late = runWhenOutcomeUnknown(batchMsMax, (error) => this.#giveUp(plans, error))
    try {
      const results = await writer.write(
        plans.map(({ claim: { partition }, recipients }) => ({
          op: 'lease' as const,
          queue: name,
          partition,
          holders: recipients.map(({ clientId }) => clientId),
          now,
        })),
      )
      this.#parts.onDue(addDuration(now, leaseTimeoutUs))
      for (const [index, plan] of plans.entries()) {
        const items = results[index] ?? []
        // The store ends an answer at a number of bytes. Then the partition may have more.
        const isEmptied = items.length < plan.claim.asked && sumBytes(items) < stepBytesMax
        this.#counts.settle(plan.claim, items.length, isEmptied)
        this.#distribute(plan, items, now)
      }
      this.#adjustItemsMax(results)
    } catch (error) {
      this.#parts.onRejected(error)
      for (const { claim, recipients } of plans) {
        this.#counts.cancel(claim)
        for (const waiter of recipients) this.#waiters.reject(waiter, error)
      }
    } finally {
      late.cancel()
    }
  }

  /** The store takes too long: rejects the leases. Items that arrive for them later are put back. */
  #giveUp(plans: readonly Plan[], error: unknown): void {
    for (const { recipients } of plans) for (const waiter of recipients) this.#waiters.reject(waiter, error)
    const asked = plans.reduce((sum, { recipients }) => sum + recipients.length, 0)
    // A few items are not slow because of their size. The store itself is stuck.
    if (asked <= itemsMin) return
    this.#itemsMax = Math.max(itemsMin, Math.min(this.#itemsMax, Math.floor(asked / 4)))
  }

  /** Limits the items of all partitions together, if items are large. */
  #limit(assignments: readonly Assignment<LeaseWaiter>[]): readonly Assignment<LeaseWaiter>[] {
    if (this.#itemsMax === itemsMaxDefault) return assignments
    let left = this.#itemsMax
    return assignments.flatMap((assignment) => {
      const recipients = assignment.recipients.slice(0, left)
      left -= recipients.length
      return recipients.length === 0 ? [] : [{ ...assignment, recipients }]
    })
  }

  /** Decides how many items to ask for next. At most four times as many as before: they may be larger. */
  #adjustItemsMax(leased: readonly (readonly Leased[])[]): void {
    let [count, bytes] = [0, 0]
    for (const items of leased) {
      count += items.length
      bytes += sumBytes(items)
    }
    if (count === 0) return
    const fitting = Math.floor((batchBytes * count) / Math.max(bytes, 1))
    this.#itemsMax = Math.max(1, Math.min(fitting, 4 * this.#itemsMax, itemsMaxDefault))
  }

  #distribute({ claim: { partition }, recipients }: Plan, items: readonly Leased[], now: Instant): void {
    const unwanted: Leased[] = []
    const expired: Leased[] = []
    for (let index = 0; index < items.length; index++) {
      const item = items[index] as Leased
      const waiter = recipients[index] as LeaseWaiter
      // The item expired before it was leased, and the due scheduler has not removed it yet.
      if (isExpired(item, now)) expired.push(item)
      else if (this.#waiters.checkGone(waiter)) unwanted.push(item)
      else if (waiter.assigned === undefined) waiter.assigned = [item]
      else waiter.assigned.push(item)
    }
    for (const waiter of recipients) waiter.isAsking = false
    for (const waiter of recipients) {
      const { assigned } = waiter
      if (assigned === undefined) continue
      waiter.assigned = undefined
      this.#waiters.resolve(waiter, { partition, items: assigned })
    }
    if (unwanted.length > 0) this.#returnUnwanted(partition, unwanted)
    if (expired.length > 0) this.#returnExpired(partition, expired, now)
  }

  #returnUnwanted(partition: number, items: readonly Leased[]): void {
    const returned = this.#putBack(partition, items).then((isBack) => {
      if (!isBack) return
      this.#counts.add(partition, items.length)
      this.wake()
    })
    this.#puttingBack = Promise.all([this.#puttingBack, returned])
  }

  #returnExpired(partition: number, items: readonly Leased[], now: Instant): void {
    // Leases must not find the expired items again and again. When they are removed, the partition is
    // recounted.
    this.#counts.clear(partition)
    const returned = this.#putBack(partition, items).then(() => this.#parts.onDue(now))
    this.#puttingBack = Promise.all([this.#puttingBack, returned])
  }

  /** Makes the items available again, as if they had never been leased. */
  async #putBack(partition: number, items: readonly Leased[]): Promise<boolean> {
    const { writer, clock } = this.#parts
    const ids = items.map(({ id }) => id)
    try {
      await writer.write([{ op: 'unlease', queue: this.#queue().name, partition, ids, now: clock.now() }])
      return true
    } catch {
      // Their leases end at their deadline, as if the client had left a moment later.
      return false
    }
  }
}

function sumBytes(items: readonly Leased[]): number {
  let bytes = 0
  for (const { payload } of items) bytes += payload.length
  return bytes
}
