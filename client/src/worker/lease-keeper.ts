/**
 * Extends the leases of items that are being worked on, at about half of their time, and notices when one
 * was lost: the server says so, or it could not be extended until it ended.
 *
 * Extending is an extension of Redrive. A server that does not know it is asked once; from then on leases
 * just end.
 */
import type { Client } from '../client.ts'
import type { Clock } from '../clock.ts'
import { RedriveError } from '../error.ts'
import type { HeldItem } from './held-item.ts'
import { isUnknownCall } from './unknown-call.ts'

export type LeaseKeeperParts = Readonly<{
  client: Pick<Client, 'extend'>
  clock: Clock
  queue: string
  isExtending: boolean
  onLost(held: HeldItem): void
  onError(error: unknown): void
}>

const batchMax = 1_000
/** Items whose turn comes this soon after are extended along: fewer calls. */
const togetherMs = 250
/** However short a lease is, the server is not asked more often than that. */
const restMsMin = 20

export class LeaseKeeper {
  readonly #parts: LeaseKeeperParts
  /** When to extend the lease of each next, by `elapsedMs`. Infinity: it is being extended, or never will be. */
  readonly #held = new Map<HeldItem, number>()
  readonly #closing = new AbortController()
  #canExtend: boolean
  #timer: unknown
  #timerAtMs = Number.POSITIVE_INFINITY

  constructor(parts: LeaseKeeperParts) {
    this.#parts = parts
    this.#canExtend = parts.isExtending
  }

  add(items: readonly HeldItem[]): void {
    const nowMs = this.#parts.clock.elapsedMs()
    for (const held of items) this.#held.set(held, this.#extendAtMs(held, nowMs))
    this.#schedule()
  }

  remove(held: HeldItem): void {
    this.#held.delete(held)
    if (this.#held.size === 0) this.#clear()
  }

  close(): void {
    this.#closing.abort()
    this.#held.clear()
    this.#clear()
  }

  #extendAtMs({ leaseEndsAtMs }: HeldItem, nowMs: number): number {
    if (!this.#canExtend) return Number.POSITIVE_INFINITY
    return nowMs + Math.max((leaseEndsAtMs - nowMs) / 2, restMsMin)
  }

  #clear(): void {
    this.#parts.clock.clearTimer(this.#timer)
    this.#timerAtMs = Number.POSITIVE_INFINITY
  }

  #schedule(): void {
    let atMs = Number.POSITIVE_INFINITY
    for (const [held, extendAtMs] of this.#held) atMs = Math.min(atMs, extendAtMs, held.leaseEndsAtMs)
    // Later than needed is looked at when it comes; only earlier ones need a new timer.
    if (atMs >= this.#timerAtMs) return
    const { clock } = this.#parts
    clock.clearTimer(this.#timer)
    this.#timerAtMs = atMs
    // Timers may fire a moment early: rounded up, so that what is due then is due.
    this.#timer = clock.setTimer(() => this.#pass(), Math.max(Math.ceil(atMs - clock.elapsedMs()), 1))
  }

  #pass(): void {
    this.#timerAtMs = Number.POSITIVE_INFINITY
    const nowMs = this.#parts.clock.elapsedMs()
    const due = new Map<number, HeldItem[]>()
    for (const [held, extendAtMs] of this.#held) {
      if (held.leaseEndsAtMs <= nowMs) this.#lose(held)
      else if (extendAtMs <= nowMs + togetherMs) {
        this.#held.set(held, Number.POSITIVE_INFINITY)
        const same = due.get(held.partition)
        if (same === undefined) due.set(held.partition, [held])
        else same.push(held)
      }
    }
    for (const [partition, items] of due) {
      for (let at = 0; at < items.length; at += batchMax) {
        void this.#extend(partition, items.slice(at, at + batchMax))
      }
    }
    this.#schedule()
  }

  /** Never rejects. */
  async #extend(partition: number, items: readonly HeldItem[]): Promise<void> {
    const { client, clock, queue, onError } = this.#parts
    const isHeld = (held: HeldItem) => this.#held.has(held)
    let left = items
    while (left.length > 0 && this.#canExtend && !this.#closing.signal.aborted) {
      const ids = left.map(({ item }) => item.id)
      try {
        // In time for another try before the first of them ends.
        const endsAtMs = Math.min(...left.map(({ leaseEndsAtMs }) => leaseEndsAtMs))
        const answerMsMax = Math.max((endsAtMs - clock.elapsedMs()) / 2, 500)
        const options = { signal: this.#closing.signal, retriesMax: 0, answerMsMax }
        const { leaseMsLeft } = await client.extend(queue, partition, ids, options)
        for (const held of left) held.leaseEndsAtMs = clock.elapsedMs() + leaseMsLeft
        break
      } catch (error) {
        if (this.#closing.signal.aborted) return
        const lost = left.find(({ item }) => error instanceof RedriveError && error.itemId === item.id)
        // A settled item is not there any more either: that is no news.
        if (lost !== undefined) {
          if (isHeld(lost)) this.#lose(lost)
          left = left.filter((held) => held !== lost && isHeld(held))
          continue
        }
        if (isUnknownCall(error)) this.#canExtend = false
        else onError(error)
        break
      }
    }
    const nowMs = clock.elapsedMs()
    for (const held of left) if (isHeld(held)) this.#held.set(held, this.#extendAtMs(held, nowMs))
    this.#schedule()
  }

  #lose(held: HeldItem): void {
    this.remove(held)
    this.#parts.onLost(held)
  }
}
