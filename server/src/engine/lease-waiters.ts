/**
 * Leases that wait for items of one queue, in the order in which they came. They leave when they are served, when
 * their time is over, when their signal aborts, or when nobody is served any more.
 */
import type { Leased } from '../core/item.ts'
import { KnownError } from '../errors.ts'
import { Signals } from './abort-listeners.ts'
import type { LeasedItems, LeaseOptions } from './engine.ts'
import { Alarm } from './shared-timer.ts'

export type Leasing = {
  readonly arrival: number
  readonly clientId: string
  readonly countMax: number
  readonly timeoutMs: number
  readonly deadline: number
  readonly signal: AbortSignal | undefined
  readonly isThere: (() => boolean) | undefined
  /** The store is being asked for its items. */
  isServed: boolean
  /** What is on its way to it is put back. */
  isGone: boolean
  /** What it is given, while items are being dealt. */
  dealt: Leased[] | undefined
  resolve(items: LeasedItems): void
  reject(error: unknown): void
}

export class LeaseWaiters {
  readonly #queue: string
  readonly #byClient = new Map<string, Leasing>()
  /** How many items they ask for together. */
  #asked = 0
  readonly #alarm = new Alarm((now) => this.#endLate(now))
  readonly #signals = new Signals((signal) => this.#abort(signal))

  constructor(queue: string) {
    this.#queue = queue
  }

  get size(): number {
    return this.#byClient.size
  }

  has(clientId: string): boolean {
    const leasing = this.#byClient.get(clientId)
    return leasing !== undefined && !this.isGone(leasing)
  }

  /** One that went without a word is refused now: what it would be given goes to others. */
  isGone(leasing: Leasing): boolean {
    if (!leasing.isGone && leasing.isThere?.() === false)
      this.refuse(leasing, new KnownError('BAD_REQUEST', `client ${leasing.clientId} is gone`))
    return leasing.isGone
  }

  add(options: LeaseOptions, arrival: number): Promise<LeasedItems> {
    const { clientId, countMax, timeoutMs, signal, isThere } = options
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
        isThere,
        isServed: false,
        isGone: false,
        dealt: undefined,
        resolve,
        reject,
      })
      this.#asked += countMax
      this.#alarm.by(deadline, now)
      if (signal !== undefined) this.#signals.hear(signal)
    })
  }

  /**
   * Those who came first, up to an arrival, as many as their share of all: see storage/lane.ts for why not all. But where
   * there is not enough for everybody, all whom their turn can reach: what there is is dealt among them.
   */
  next(batchesMax: number, shareMin: number, arrivalMax: number, available: number): Leasing[] {
    const isEnough = available >= this.#asked
    const share = isEnough ? Math.max(Math.ceil(this.#asked / batchesMax), shareMin) : available
    const next: Leasing[] = []
    let weight = 0
    for (const leasing of this.#byClient.values()) {
      if (leasing.isServed) continue
      if (leasing.arrival > arrivalMax) break
      if (!isEnough) {
        if (next.length === share) break
        next.push(leasing)
        continue
      }
      if (next.length > 0 && weight + leasing.countMax > share) break
      next.push(leasing)
      weight += leasing.countMax
    }
    return next
  }

  arrivalsAfter(arrival: number): number[] {
    const arrivals: number[] = []
    for (const leasing of this.#byClient.values())
      if (leasing.arrival > arrival) arrivals.push(leasing.arrival)
    return arrivals
  }

  serve(leasing: Leasing, items: LeasedItems): void {
    const { resolve } = leasing
    this.#leave(leasing)
    resolve(items)
  }

  refuse(leasing: Leasing, error: unknown): void {
    if (leasing.isGone) return
    leasing.isGone = true
    const { reject } = leasing
    this.#leave(leasing)
    reject(error)
  }

  refuseAll(error: unknown): void {
    for (const leasing of this.#byClient.values()) this.refuse(leasing, error)
  }

  /** Those whose time has come; says when the next one's comes. */
  #endLate(now: number): number {
    let next = Number.POSITIVE_INFINITY
    for (const leasing of this.#byClient.values()) {
      if (leasing.deadline > now) next = Math.min(next, leasing.deadline)
      else {
        const sentence = `no items in queue ${this.#queue} within ${leasing.timeoutMs} ms`
        this.refuse(leasing, new KnownError('LEASE_TIMEOUT', sentence))
      }
    }
    return next
  }

  #abort(signal: AbortSignal): void {
    for (const leasing of this.#byClient.values()) {
      if (leasing.signal === signal) this.refuse(leasing, signal.reason)
    }
  }

  #leave(leasing: Leasing): void {
    this.#byClient.delete(leasing.clientId)
    this.#asked -= leasing.countMax
    if (this.#byClient.size === 0) this.#alarm.off()
    if (leasing.signal !== undefined) this.#signals.drop(leasing.signal)
    // A map is rebuilt now and then, and what was in it just then lives on with the old one until the next
    // full collection: without this so would the items that it was given.
    leasing.resolve = nothing
    leasing.reject = nothing
  }
}

function nothing(): void {}
