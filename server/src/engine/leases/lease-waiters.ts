/**
 * Leases that wait for items of one queue, in order of arrival. A lease leaves when it gets items, when its
 * time is over, when its signal aborts, or when the queue closes.
 */
import type { QueueName } from '../../core/ids/ids.ts'
import type { Leased } from '../../core/items/item.ts'
import { KnownError } from '../../errors.ts'
import type { LeasedItems, LeaseOptions } from '../engine.ts'
import { AbortListeners } from '../timing/abort-listeners.ts'
import { SharedTimer } from '../timing/shared-timer.ts'

export type LeaseWaiter = {
  readonly arrival: number
  readonly clientId: string
  readonly countMax: number
  readonly timeoutMs: number
  readonly deadline: number
  readonly signal: AbortSignal | undefined
  readonly isConnected: (() => boolean) | undefined
  /** The store is being asked for items for this lease. */
  isAsking: boolean
  /** When the store was asked. */
  askedAtMs: number
  /** The lease has left. Items that arrive for it are put back. */
  isGone: boolean
  /** The items for this lease while an answer of the store is distributed. */
  assigned: Leased[] | undefined
  resolve(items: LeasedItems): void
  reject(error: unknown): void
}

/** A store that answers takes less, also on a busy machine. */
export const silentMsMin = 500

export class LeaseWaiters {
  readonly #queue: QueueName
  readonly #isStoreSilent: (nowMs: number) => boolean
  readonly #byClient = new Map<string, LeaseWaiter>()
  /** How many items the leases ask for in total. */
  #askedTotal = 0
  readonly #timer = new SharedTimer((now) => this.#rejectLate(now))
  readonly #listeners = new AbortListeners((signal) => this.#rejectAborted(signal))

  /** `isStoreSilent`: the store does not answer, so it is unknown whether the queue has items. */
  constructor(queue: QueueName, isStoreSilent: (nowMs: number) => boolean) {
    this.#queue = queue
    this.#isStoreSilent = isStoreSilent
  }

  get size(): number {
    return this.#byClient.size
  }

  has(clientId: string): boolean {
    const waiter = this.#byClient.get(clientId)
    return waiter !== undefined && !this.checkGone(waiter)
  }

  /** Whether the lease has left. A lease whose client disconnected leaves now. */
  checkGone(waiter: LeaseWaiter): boolean {
    if (!waiter.isGone && waiter.isConnected?.() === false)
      this.reject(waiter, new KnownError('BAD_REQUEST', `client ${waiter.clientId} is gone`))
    return waiter.isGone
  }

  add(options: LeaseOptions, arrival: number): Promise<LeasedItems> {
    const { clientId, countMax, timeoutMs, signal, isConnected } = options
    return new Promise<LeasedItems>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const now = performance.now()
      const deadline = now + timeoutMs
      this.#byClient.set(clientId, {
        arrival,
        clientId,
        countMax,
        timeoutMs,
        deadline,
        signal,
        isConnected,
        isAsking: false,
        askedAtMs: 0,
        isGone: false,
        assigned: undefined,
        resolve,
        reject,
      })
      this.#askedTotal += countMax
      this.#timer.wakeBy(deadline, now)
      if (signal !== undefined) this.#listeners.add(signal)
    })
  }

  /**
   * The oldest waiters, up to `arrivalMax`. If there are enough items, takes this batch's share of all
   * waiters (storage/shared/batch-lane.ts explains why not all); otherwise as many waiters as there are
   * items.
   */
  takeNext(batchesMax: number, shareMin: number, arrivalMax: number, available: number): LeaseWaiter[] {
    const isEnough = available >= this.#askedTotal
    const share = isEnough ? Math.max(Math.ceil(this.#askedTotal / batchesMax), shareMin) : available
    const next: LeaseWaiter[] = []
    let weight = 0
    for (const waiter of this.#byClient.values()) {
      if (waiter.isAsking) continue
      if (waiter.arrival > arrivalMax) break
      if (!isEnough) {
        if (next.length === share) break
        next.push(waiter)
        continue
      }
      if (next.length > 0 && weight + waiter.countMax > share) break
      next.push(waiter)
      weight += waiter.countMax
    }
    return next
  }

  listArrivalsAfter(arrival: number): number[] {
    const arrivals: number[] = []
    for (const waiter of this.#byClient.values()) if (waiter.arrival > arrival) arrivals.push(waiter.arrival)
    return arrivals
  }

  resolve(waiter: LeaseWaiter, items: LeasedItems): void {
    const { resolve } = waiter
    this.#remove(waiter)
    resolve(items)
  }

  reject(waiter: LeaseWaiter, error: unknown): void {
    if (waiter.isGone) return
    waiter.isGone = true
    const { reject } = waiter
    this.#remove(waiter)
    reject(error)
  }

  rejectAll(error: unknown): void {
    for (const waiter of this.#byClient.values()) this.reject(waiter, error)
  }

  /** Rejects the leases whose time is over, and returns the next deadline. */
  #rejectLate(now: number): number {
    let next = Number.POSITIVE_INFINITY
    for (const waiter of this.#byClient.values()) {
      if (waiter.deadline > now) next = Math.min(next, waiter.deadline)
      else this.reject(waiter, this.#createTimeout(waiter, now))
    }
    return next
  }

  #createTimeout(waiter: LeaseWaiter, now: number): KnownError {
    const isUnanswered = waiter.isAsking && now - waiter.askedAtMs > silentMsMin
    if (isUnanswered || this.#isStoreSilent(now)) {
      const sentence = `the store does not answer, so it is unknown whether queue ${this.#queue} has items`
      return new KnownError('STORE_UNAVAILABLE', sentence, undefined, sentence)
    }
    return new KnownError('LEASE_TIMEOUT', `no items in queue ${this.#queue} within ${waiter.timeoutMs} ms`)
  }

  #rejectAborted(signal: AbortSignal): void {
    for (const waiter of this.#byClient.values()) {
      if (waiter.signal === signal) this.reject(waiter, signal.reason)
    }
  }

  #remove(waiter: LeaseWaiter): void {
    this.#byClient.delete(waiter.clientId)
    this.#askedTotal -= waiter.countMax
    if (this.#byClient.size === 0) this.#timer.stop()
    if (waiter.signal !== undefined) this.#listeners.remove(waiter.signal)
    // A map is rebuilt now and then, and its former entries live on with the old table until the next full
    // garbage collection. Without this, so would the items that the waiter got.
    waiter.resolve = ignore
    waiter.reject = ignore
  }
}

function ignore(): void {}
