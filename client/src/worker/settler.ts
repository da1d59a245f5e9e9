/**
 * Reports to the server what became of items: completes and retries, in batches.
 *
 * What is to be said in one call is a group: completions of one partition, or retries of one partition
 * with the same error, since the error is told once per call. A group goes out when it is full or has
 * lingered; while a call of a group is under way, the next ones gather.
 *
 * A call is all or nothing. If it is refused because of one item, whose lease was lost, it is repeated
 * without it. If its answer was lost it is repeated as it is; when the server then does not know two of the
 * items any more, the first call had done it, as far as anybody can tell.
 */
import { backoffMs } from '../backoff.ts'
import type { Client } from '../client.ts'
import { type Clock, rest } from '../clock.ts'
import { RedriveError } from '../error.ts'
import { toFailureHeader } from '../item-failure.ts'
import type { HeldItem } from './held-item.ts'
import type { GivenBack } from './outcome.ts'

export type Settling = Readonly<{
  held: HeldItem
  /** Null: complete it. */
  back: GivenBack | null
  /** What the handler threw. */
  thrown: unknown
}>

export type SettlerParts = Readonly<{
  client: Pick<Client, 'complete' | 'retry'>
  clock: Clock
  random: () => number
  queue: string
  batchMax: number
  lingerMs: number
  backoffMsMax: number
  onSettled(settling: Settling, outcome: 'done' | 'lost' | 'unknown'): void
  onError(error: unknown, during: 'complete' | 'retry'): void
}>

type Group = { readonly list: Settling[]; readyAtMs: number; calls: number }

/** Errors that differ make many small groups. They must not flood the server, which bounds calls per queue. */
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

  /** Items not yet settled. */
  get size(): number {
    return this.#size
  }

  add(settling: Settling): void {
    if (this.#closing.signal.aborted) return
    this.#size++
    const key = groupKey(settling)
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = { list: [], readyAtMs: 0, calls: 0 }
      this.#groups.set(key, group)
    }
    if (group.list.length === 0) group.readyAtMs = this.#parts.clock.elapsedMs() + this.#parts.lingerMs
    group.list.push(settling)
    // The first one sets the timer that takes the others along.
    if (group.list.length === 1 || group.list.length >= this.#parts.batchMax) this.#pump()
  }

  /** Resolves when everything is settled, or when it is closed. */
  whenEmpty(): Promise<void> {
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

  #pump(): void {
    const { clock, batchMax } = this.#parts
    clock.clearTimer(this.#timer)
    const nowMs = clock.elapsedMs()
    let nextMs = Number.POSITIVE_INFINITY
    for (const [key, group] of this.#groups) {
      if (this.#calls >= callsMax) return
      const isFull = group.list.length >= batchMax
      // One under way: the next call of the group can wait for it, and be larger.
      if (group.list.length === 0 || (group.calls > 0 && !isFull)) continue
      if (isFull || group.readyAtMs <= nowMs) void this.#send(key, group)
      else nextMs = Math.min(nextMs, group.readyAtMs)
    }
    if (nextMs < Number.POSITIVE_INFINITY) {
      this.#timer = clock.setTimer(() => this.#pump(), Math.max(Math.ceil(nextMs - nowMs), 1))
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
    this.#pump()
  }

  async #settle(batch: readonly Settling[]): Promise<void> {
    const { clock, random, backoffMsMax, onError } = this.#parts
    const { signal } = this.#closing
    const during = batch[0]?.back === null ? 'complete' : 'retry'
    let left = batch
    let wasAnswerLost = false
    let wasOneGone = false
    for (let tries = 1; left.length > 0; tries++) {
      try {
        await this.#call(left)
        return this.#report(left, 'done')
      } catch (error) {
        if (signal.aborted) return
        const known = error instanceof RedriveError ? error : undefined
        const gone = left.find(({ held }) => held.item.id === known?.itemId)
        if (gone !== undefined) {
          if (wasAnswerLost && wasOneGone) return this.#report(left, 'unknown')
          wasOneGone = true
          left = left.filter((settling) => settling !== gone)
          this.#report([gone], wasAnswerLost ? 'unknown' : 'lost')
          continue
        }
        onError(error, during)
        wasAnswerLost ||= known?.isOutcomeUnknown ?? false
        if (!known?.isRetryable) return this.#report(left, 'lost')
        await rest(clock, backoffMs({ msMin: 50, msMax: backoffMsMax }, tries, random), signal).catch(
          () => {},
        )
        if (signal.aborted) return
        const nowMs = clock.elapsedMs()
        const isOver = ({ held }: Settling) => held.leaseEndsAtMs <= nowMs
        this.#report(left.filter(isOver), wasAnswerLost ? 'unknown' : 'lost')
        left = left.filter((settling) => !isOver(settling))
      }
    }
  }

  #call(list: readonly Settling[]): Promise<void> {
    const { client, queue } = this.#parts
    const [first] = list as readonly [Settling]
    const { partition } = first.held
    const options = { signal: this.#closing.signal, retriesMax: 0 }
    if (first.back === null) {
      const ids = list.map(({ held }) => held.item.id)
      return client.complete(queue, partition, ids, options)
    }
    const items = list.map(({ held, back }) => ({
      id: held.item.id,
      isDead: back?.isDead ?? false,
      ...(back?.retryAt !== undefined && { retryAt: back.retryAt }),
    }))
    const { failure } = first.back
    return client.retry(queue, partition, items, { ...options, ...(failure !== null && { failure }) })
  }

  #report(list: readonly Settling[], outcome: 'done' | 'lost' | 'unknown'): void {
    if (this.#closing.signal.aborted) return
    this.#size -= list.length
    for (const settling of list) this.#parts.onSettled(settling, outcome)
  }
}

function groupKey({ held, back }: Settling): string {
  if (back === null) return `${held.partition}`
  return `${held.partition} ${back.failure === null ? '' : toFailureHeader(back.failure)}`
}
