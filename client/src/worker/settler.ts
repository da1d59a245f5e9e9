/**
 * Settles items at the server (completes or retries them) in batches.
 *
 * Items that fit into one call form a group: completions of one partition, or retries of one partition with
 * the same error, because a call carries one error. A group is sent when it is full or has waited for
 * `lingerMs`. While a call of a group is in progress, the next items of that group are collected.
 *
 * A call settles all its items or none. If the server rejects the call because the lease of one item was
 * lost, it is repeated without that item. If the answer was lost, the same call is repeated; if the server
 * then reports two of the items as missing, the first call probably settled them all, and their outcome is
 * reported as unknown.
 */

import type { Client } from '../client.ts'
import { computeBackoffMs } from '../http/backoff.ts'
import { type Clock, sleep } from '../http/clock.ts'
import { RedriveError } from '../http/error.ts'
import { toFailureHeader } from '../queues/item-failure.ts'
import type { ActiveItem } from './active-item.ts'
import type { RetryRequest } from './outcome.ts'

export type Settlement = Readonly<{
  active: ActiveItem
  /** Null: complete the item. */
  retry: RetryRequest | null
  /** The value that the handler threw. */
  thrown: unknown
}>

export type SettlementOutcome = 'done' | 'lost' | 'unknown'

export type SettlerParts = Readonly<{
  client: Pick<Client, 'complete' | 'retry'>
  clock: Clock
  random: () => number
  queue: string
  batchMax: number
  lingerMs: number
  backoffMsMax: number
  onSettled(settlement: Settlement, outcome: SettlementOutcome): void
  onError(error: unknown, during: 'complete' | 'retry'): void
}>

type Group = { readonly list: Settlement[]; readyAtMs: number; calls: number }

/** The state of one batch over its tries. */
type Batch = { remaining: readonly Settlement[]; wasAnswerLost: boolean; wasItemMissing: boolean }

/** Different errors form many small groups. The limit keeps them from overloading the queue with calls. */
const callsMax = 4

export class Settler {
  readonly #parts: SettlerParts
  readonly #groups = new Map<string, Group>()
  readonly #closing = new AbortController()
  #size = 0
  #calls = 0
  #timer: unknown
  #whenEmpty: (() => void)[] = []

  constructor(parts: SettlerParts) {
    this.#parts = parts
  }

  /** The number of items that are not settled yet. */
  get size(): number {
    return this.#size
  }

  add(settlement: Settlement): void {
    if (this.#closing.signal.aborted) return
    this.#size++
    const key = toGroupKey(settlement)
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = { list: [], readyAtMs: 0, calls: 0 }
      this.#groups.set(key, group)
    }
    if (group.list.length === 0) group.readyAtMs = this.#parts.clock.elapsedMs() + this.#parts.lingerMs
    group.list.push(settlement)
    // The first item of a group sets the timer that also sends the items added after it.
    if (group.list.length === 1 || group.list.length >= this.#parts.batchMax) this.#sendReadyGroups()
  }

  /** Resolves when every item is settled, or when the settler is closed. */
  waitUntilEmpty(): Promise<void> {
    if (this.#size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenEmpty.push(resolve))
  }

  close(): void {
    this.#closing.abort()
    this.#parts.clock.clearTimer(this.#timer)
    this.#groups.clear()
    this.#size = 0
    this.#wakeWaiters()
  }

  #wakeWaiters(): void {
    for (const resolve of this.#whenEmpty.splice(0)) resolve()
  }

  #sendReadyGroups(): void {
    const { clock, batchMax } = this.#parts
    clock.clearTimer(this.#timer)
    const nowMs = clock.elapsedMs()
    let nextMs = Number.POSITIVE_INFINITY
    for (const [key, group] of this.#groups) {
      if (this.#calls >= callsMax) return
      const isFull = group.list.length >= batchMax
      // While a call of the group is in progress, collect items for a larger next call.
      if (group.list.length === 0 || (group.calls > 0 && !isFull)) continue
      if (isFull || group.readyAtMs <= nowMs) void this.#send(key, group)
      else nextMs = Math.min(nextMs, group.readyAtMs)
    }
    if (nextMs < Number.POSITIVE_INFINITY) {
      this.#timer = clock.setTimer(() => this.#sendReadyGroups(), Math.max(Math.ceil(nextMs - nowMs), 1))
    }
  }

  /** Never rejects. */
  async #send(key: string, group: Group): Promise<void> {
    const batch = group.list.splice(0, this.#parts.batchMax)
    group.calls++
    this.#calls++
    await this.#settle(batch)
    group.calls--
    this.#calls--
    if (group.list.length === 0 && group.calls === 0) this.#groups.delete(key)
    if (this.#closing.signal.aborted) return
    if (this.#size === 0) this.#wakeWaiters()
    this.#sendReadyGroups()
  }

  async #settle(settlements: readonly Settlement[]): Promise<void> {
    const batch: Batch = { remaining: settlements, wasAnswerLost: false, wasItemMissing: false }
    for (let tries = 1; batch.remaining.length > 0; tries++) {
      try {
        await this.#call(batch.remaining)
        return this.#report(batch.remaining, 'done')
      } catch (error) {
        if (this.#closing.signal.aborted) return
        const missing = batch.remaining.find(
          ({ active }) => error instanceof RedriveError && active.item.id === error.itemId,
        )
        if (missing === undefined) await this.#handleFailure(batch, error, tries)
        else this.#handleMissing(batch, missing)
      }
    }
  }

  /**
   * Removes the missing item from the batch, or ends the batch if the first call probably settled all of it.
   */
  #handleMissing(batch: Batch, missing: Settlement): void {
    if (batch.wasAnswerLost && batch.wasItemMissing) {
      this.#reportAll(batch, 'unknown')
      return
    }
    batch.wasItemMissing = true
    batch.remaining = batch.remaining.filter((settlement) => settlement !== missing)
    this.#report([missing], batch.wasAnswerLost ? 'unknown' : 'lost')
  }

  /** Waits before the next try, and removes items whose lease ended; ends the batch if no retry can help. */
  async #handleFailure(batch: Batch, error: unknown, tries: number): Promise<void> {
    const { clock, random, backoffMsMax, onError } = this.#parts
    const { signal } = this.#closing
    onError(error, batch.remaining[0]?.retry === null ? 'complete' : 'retry')
    const known = error instanceof RedriveError ? error : undefined
    batch.wasAnswerLost ||= known?.isOutcomeUnknown ?? false
    if (!known?.isRetryable) return this.#reportAll(batch, 'lost')
    const delayMs = computeBackoffMs({ msMin: 50, msMax: backoffMsMax }, tries, random)
    await sleep(clock, delayMs, signal).catch(() => {})
    if (signal.aborted) {
      batch.remaining = []
      return
    }
    const nowMs = clock.elapsedMs()
    const isLeaseOver = ({ active }: Settlement) => active.leaseEndsAtMs <= nowMs
    this.#report(batch.remaining.filter(isLeaseOver), batch.wasAnswerLost ? 'unknown' : 'lost')
    batch.remaining = batch.remaining.filter((settlement) => !isLeaseOver(settlement))
  }

  #call(settlements: readonly Settlement[]): Promise<void> {
    const { client, queue } = this.#parts
    const [first] = settlements as readonly [Settlement]
    const { partition } = first.active
    const options = { signal: this.#closing.signal, retriesMax: 0 }
    if (first.retry === null) {
      const ids = settlements.map(({ active }) => active.item.id)
      return client.complete(queue, partition, ids, options)
    }
    const items = settlements.map(({ active, retry }) => ({
      id: active.item.id,
      isDead: retry?.isDead ?? false,
      ...(retry?.retryAt !== undefined && { retryAt: retry.retryAt }),
    }))
    const { failure } = first.retry
    return client.retry(queue, partition, items, { ...options, ...(failure !== null && { failure }) })
  }

  #reportAll(batch: Batch, outcome: SettlementOutcome): void {
    const { remaining } = batch
    batch.remaining = []
    this.#report(remaining, outcome)
  }

  #report(settlements: readonly Settlement[], outcome: SettlementOutcome): void {
    if (this.#closing.signal.aborted) return
    this.#size -= settlements.length
    for (const settlement of settlements) this.#parts.onSettled(settlement, outcome)
  }
}

function toGroupKey({ active, retry }: Settlement): string {
  if (retry === null) return `${active.partition}`
  return `${active.partition} ${retry.failure === null ? '' : toFailureHeader(retry.failure)}`
}
