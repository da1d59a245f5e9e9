/**
 * Extends the leases of items in progress at about half of their time, and detects lost leases: the server
 * reports the loss, or the lease ended before it could be extended.
 *
 * Extending leases is specific to Redrive. If the server does not have the call, it is tried only once; after
 * that, leases end at their deadline.
 */
import type { Client } from '../client.ts'
import type { Clock } from '../http/clock.ts'
import { RedriveError } from '../http/error.ts'
import type { ActiveItem } from './active-item.ts'
import { isUnknownCall } from './unknown-call.ts'

export type ItemLeaseRenewerParts = Readonly<{
  client: Pick<Client, 'extend'>
  clock: Clock
  queue: string
  isExtending: boolean
  onLost(active: ActiveItem): void
  onError(error: unknown): void
}>

const batchMax = 1_000
/** Items that become due this soon are extended in the same call, which saves calls. */
const batchWindowMs = 250
/** Minimum time between two extensions of an item, even for very short leases. */
const intervalMsMin = 20

export class ItemLeaseRenewer {
  readonly #parts: ItemLeaseRenewerParts
  /**
   * When to extend each item next, by `elapsedMs`. Infinity: an extension is in progress, or will never
   * happen.
   */
  readonly #extendAtMs = new Map<ActiveItem, number>()
  readonly #closing = new AbortController()
  #canExtend: boolean
  #timer: unknown
  #timerAtMs = Number.POSITIVE_INFINITY

  constructor(parts: ItemLeaseRenewerParts) {
    this.#parts = parts
    this.#canExtend = parts.isExtending
  }

  add(items: readonly ActiveItem[]): void {
    const nowMs = this.#parts.clock.elapsedMs()
    for (const active of items) this.#extendAtMs.set(active, this.#nextExtensionMs(active, nowMs))
    this.#schedule()
  }

  remove(active: ActiveItem): void {
    this.#extendAtMs.delete(active)
    if (this.#extendAtMs.size === 0) this.#clearTimer()
  }

  close(): void {
    this.#closing.abort()
    this.#extendAtMs.clear()
    this.#clearTimer()
  }

  #nextExtensionMs({ leaseEndsAtMs }: ActiveItem, nowMs: number): number {
    if (!this.#canExtend) return Number.POSITIVE_INFINITY
    return nowMs + Math.max((leaseEndsAtMs - nowMs) / 2, intervalMsMin)
  }

  #clearTimer(): void {
    this.#parts.clock.clearTimer(this.#timer)
    this.#timerAtMs = Number.POSITIVE_INFINITY
  }

  #schedule(): void {
    let atMs = Number.POSITIVE_INFINITY
    for (const [{ leaseEndsAtMs }, extendAtMs] of this.#extendAtMs)
      atMs = Math.min(atMs, extendAtMs, leaseEndsAtMs)
    // A timer that fires too early only runs an empty pass, so it is replaced only by an earlier one.
    if (atMs >= this.#timerAtMs) return
    const { clock } = this.#parts
    clock.clearTimer(this.#timer)
    this.#timerAtMs = atMs
    // Round up: timers may fire slightly early, and the item would not be due yet.
    this.#timer = clock.setTimer(() => this.#pass(), Math.max(Math.ceil(atMs - clock.elapsedMs()), 1))
  }

  #pass(): void {
    this.#timerAtMs = Number.POSITIVE_INFINITY
    const nowMs = this.#parts.clock.elapsedMs()
    const dueByPartition = new Map<number, ActiveItem[]>()
    for (const [active, extendAtMs] of this.#extendAtMs) {
      if (active.leaseEndsAtMs <= nowMs) this.#lose(active)
      else if (extendAtMs <= nowMs + batchWindowMs) {
        this.#extendAtMs.set(active, Number.POSITIVE_INFINITY)
        const items = dueByPartition.get(active.partition)
        if (items === undefined) dueByPartition.set(active.partition, [active])
        else items.push(active)
      }
    }
    for (const [partition, items] of dueByPartition) {
      for (let start = 0; start < items.length; start += batchMax) {
        void this.#extend(partition, items.slice(start, start + batchMax))
      }
    }
    this.#schedule()
  }

  /** Never rejects. */
  async #extend(partition: number, items: readonly ActiveItem[]): Promise<void> {
    let remaining = items
    while (remaining.length > 0 && this.#canExtend && !this.#closing.signal.aborted) {
      try {
        await this.#callExtend(partition, remaining)
        break
      } catch (error) {
        if (this.#closing.signal.aborted) return
        const missing = remaining.find(
          ({ item }) => error instanceof RedriveError && error.itemId === item.id,
        )
        if (missing === undefined) {
          this.#handleFailure(error)
          break
        }
        remaining = this.#handleMissing(missing, remaining)
      }
    }
    this.#reschedule(remaining)
  }

  #handleFailure(error: unknown): void {
    if (isUnknownCall(error)) this.#canExtend = false
    else this.#parts.onError(error)
  }

  /** Returns the other items of the call that are still active. */
  #handleMissing(missing: ActiveItem, items: readonly ActiveItem[]): readonly ActiveItem[] {
    // An item that was settled during the call is also missing at the server, but its lease is not lost.
    if (this.#extendAtMs.has(missing)) this.#lose(missing)
    return items.filter((active) => active !== missing && this.#extendAtMs.has(active))
  }

  async #callExtend(partition: number, items: readonly ActiveItem[]): Promise<void> {
    const { client, clock, queue } = this.#parts
    const ids = items.map(({ item }) => item.id)
    // Leave time for another try before the first lease ends.
    const endsAtMs = Math.min(...items.map(({ leaseEndsAtMs }) => leaseEndsAtMs))
    const answerMsMax = Math.max((endsAtMs - clock.elapsedMs()) / 2, 500)
    const options = { signal: this.#closing.signal, retriesMax: 0, answerMsMax }
    const { leaseMsLeft } = await client.extend(queue, partition, ids, options)
    for (const active of items) active.leaseEndsAtMs = clock.elapsedMs() + leaseMsLeft
  }

  #reschedule(items: readonly ActiveItem[]): void {
    const nowMs = this.#parts.clock.elapsedMs()
    for (const active of items) {
      if (this.#extendAtMs.has(active)) this.#extendAtMs.set(active, this.#nextExtensionMs(active, nowMs))
    }
    this.#schedule()
  }

  #lose(active: ActiveItem): void {
    this.remove(active)
    this.#parts.onLost(active)
  }
}
