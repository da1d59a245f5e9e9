/**
 * Keeps a Vault lease usable: a login token, or database credentials that Vault issues.
 *
 * A lease is renewed at two thirds of its time. Vault renews only up to a maximum: near it, Vault grants less
 * time than at first, or refuses. From then on the lease cannot be extended, and a new one is acquired while
 * the old one still has a third of its time, so that its users can switch over. While Vault cannot be
 * reached, the request is repeated, and the current lease stays in use until it ends.
 */
import type { Timers } from '../secrets/timers.ts'

export type Grant<T> = Readonly<{
  value: T
  /** Infinity: the lease never ends. */
  leaseMs: number
  isRenewable: boolean
}>

export type LeaseSource<T> = Readonly<{
  acquire(): Promise<Grant<T>>
  renew(grant: Grant<T>): Promise<Grant<T>>
  /** True if the same request can succeed later. Otherwise the lease is replaced instead of renewed. */
  isTemporary(error: unknown): boolean
  isSame(one: T, other: T): boolean
  /** True if the value becomes invalid before its lease ends. Then it is replaced immediately. */
  isEndingEarly?(value: T): boolean
  /** A lease could not be acquired or renewed. `isUsable`: the current lease is still valid. */
  onFailure(error: unknown, isUsable: boolean): void
  /** Vault refused to renew, for example at the maximum. A new lease is acquired. */
  onRenewalRefused(error: unknown): void
}>

export interface VaultLeaseRenewer<T> {
  /** Returns the leased value. Acquires a lease if there is no valid one, and throws if that fails. */
  current(): Promise<T>
  /** Marks the leased value as not working, even if its lease has not ended. */
  markRejected(isThisOne: (value: T) => boolean): void
  /** Returns the leased value, if there is one. */
  peek(): T | undefined
  /** Checks immediately whether the lease must be replaced, because `isEndingEarly` may have changed. */
  wake(): void
  onReplaced(listener: (value: T) => void): () => void
  /** Renews or replaces the lease if it is due. */
  pass(): Promise<void>
  /** Stops renewing. Returns the value that is still leased. */
  close(): Promise<T | undefined>
}

type CurrentLease<T> = Readonly<{
  grant: Grant<T>
  /** As granted at first: a renewal for less means that the maximum is near. */
  fullLeaseMs: number
  endsAtMs: number
  dueAtMs: number
  /** The lease cannot be renewed any more. */
  isFinal: boolean
}>

const waitMsMin = 100
const waitMsMax = 3_600_000
const backoffMsMin = 1_000
const backoffMsMax = 30_000
/** A store that rejects all credentials must not cause a new lease for each rejection. */
const rejectionIntervalMs = 10_000

export function createVaultLeaseRenewer<T>(source: LeaseSource<T>, timers: Timers): VaultLeaseRenewer<T> {
  return new Renewer(source, timers)
}

class Renewer<T> implements VaultLeaseRenewer<T> {
  readonly #source: LeaseSource<T>
  readonly #timers: Timers
  readonly #listeners = new Set<(value: T) => void>()
  #lease: CurrentLease<T> | undefined
  #acquiredAtMs = Number.NEGATIVE_INFINITY
  #failures = 0
  #isClosed = false
  #running: Promise<void> | undefined
  #cancelTimer = (): void => {}

  constructor(source: LeaseSource<T>, timers: Timers) {
    this.#source = source
    this.#timers = timers
  }

  async current(): Promise<T> {
    if (!this.#isUsable()) {
      if (this.#isClosed) throw new Error('the lease was already returned to Vault')
      await this.pass()
    }
    if (this.#lease === undefined) throw new Error('there is no lease')
    return this.#lease.grant.value
  }

  markRejected(isThisOne: (value: T) => boolean): void {
    const lease = this.#lease
    const nowMs = this.#timers.nowMs()
    if (lease === undefined || !isThisOne(lease.grant.value)) return
    if (nowMs - this.#acquiredAtMs < rejectionIntervalMs) return
    this.#lease = { ...lease, endsAtMs: nowMs, isFinal: true }
  }

  peek(): T | undefined {
    return this.#lease?.grant.value
  }

  wake(): void {
    // A pass in progress checks again when it ends.
    if (this.#running === undefined && this.#lease !== undefined) this.#schedule(0)
  }

  onReplaced(listener: (value: T) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Passes never overlap: concurrent callers share the outcome of the running one. */
  readonly pass = (): Promise<void> => {
    this.#running ??= this.#renewIfDue().finally(() => {
      this.#running = undefined
      this.#schedule(this.#waitMs())
    })
    return this.#running
  }

  async close(): Promise<T | undefined> {
    this.#isClosed = true
    this.#cancelTimer()
    await this.#running?.catch(ignoreReported)
    const value = this.#isUsable() ? this.#lease?.grant.value : undefined
    this.#lease = undefined
    return value
  }

  #isUsable(): boolean {
    return this.#lease !== undefined && this.#timers.nowMs() < this.#lease.endsAtMs
  }

  #isEndingEarly(): boolean {
    return this.#lease !== undefined && this.#source.isEndingEarly?.(this.#lease.grant.value) === true
  }

  async #renewIfDue(): Promise<void> {
    const lease = this.#lease
    try {
      if (lease === undefined || !this.#isUsable() || this.#isEndingEarly()) await this.#acquire()
      else if (this.#timers.nowMs() >= lease.dueAtMs) await this.#renewOrReplace(lease)
      this.#failures = 0
    } catch (error) {
      this.#failures += 1
      this.#source.onFailure(error, this.#isUsable())
      throw error
    }
  }

  async #acquire(): Promise<void> {
    const requestedAtMs = this.#timers.nowMs()
    const grant = await this.#source.acquire()
    const previous = this.#lease?.grant.value
    this.#lease = toLease(grant, grant.leaseMs, requestedAtMs)
    this.#acquiredAtMs = requestedAtMs
    if (previous !== undefined && !this.#source.isSame(previous, grant.value)) {
      for (const listener of this.#listeners) listener(grant.value)
    }
  }

  async #renewOrReplace(lease: CurrentLease<T>): Promise<void> {
    if (lease.isFinal) return this.#acquire()
    try {
      await this.#renew(lease)
    } catch (error) {
      if (this.#source.isTemporary(error)) throw error
      this.#source.onRenewalRefused(error)
      this.#lease = this.#lease && { ...this.#lease, isFinal: true }
      await this.#acquire()
    }
  }

  async #renew(lease: CurrentLease<T>): Promise<void> {
    const requestedAtMs = this.#timers.nowMs()
    const grant = await this.#source.renew(lease.grant)
    const renewed = toLease(grant, lease.fullLeaseMs, requestedAtMs)
    // Less than half of the lease remains, and further renewals would only get shorter: replace it now.
    const isNearEnd = grant.leaseMs < lease.fullLeaseMs / 2 || renewed.endsAtMs <= lease.endsAtMs
    this.#lease = { ...renewed, isFinal: renewed.isFinal || isNearEnd }
    if (isNearEnd) await this.#acquire()
  }

  #waitMs(): number {
    const nowMs = this.#timers.nowMs()
    const dueAtMs = this.#isEndingEarly() ? nowMs : (this.#lease?.dueAtMs ?? nowMs)
    if (this.#failures === 0) return clamp(dueAtMs - nowMs, waitMsMin, waitMsMax)
    const backoffMs = Math.min(backoffMsMin * 2 ** Math.min(this.#failures - 1, 20), backoffMsMax)
    if (!this.#isUsable()) return backoffMs
    // Even a short lease allows several tries before it ends.
    return clamp(((this.#lease?.endsAtMs ?? nowMs) - nowMs) / 4, waitMsMin, backoffMs)
  }

  #schedule(waitMs: number): void {
    this.#cancelTimer()
    if (this.#isClosed) return
    this.#cancelTimer = this.#timers.schedule(waitMs, () => this.pass().catch(ignoreReported))
  }
}

function toLease<T>(grant: Grant<T>, fullLeaseMs: number, requestedAtMs: number): CurrentLease<T> {
  return {
    grant,
    fullLeaseMs,
    // Count from the request, not from the answer: Vault's time starts before the answer arrives.
    endsAtMs: requestedAtMs + grant.leaseMs,
    dueAtMs: requestedAtMs + (grant.leaseMs * 2) / 3,
    // Slightly less may be rounding; clearly less means that the maximum is near.
    isFinal: !grant.isRenewable || grant.leaseMs < fullLeaseMs * 0.95,
  }
}

/** `onFailure` has already reported the error. */
function ignoreReported(): void {}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max)
}
