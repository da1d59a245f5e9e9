/** The state of a push consumer in the memory of this server: its jobs, its limits and its counts. */

import type { Leased } from '../../../core/items/item.ts'
import { type Instant, usPerMs, usPerSecond } from '../../../core/time/instant.ts'
import { type BreakerCounts, newBreakerCounts } from '../../../core/webhook/delivery/breaker.ts'
import { type ConsumerDelivery, newDelivery } from '../../../core/webhook/delivery/consumer-delivery.ts'
import type { SigningSecrets } from '../../../core/webhook/signature.ts'
import type { StoredDelivery } from '../../../storage/contract/deliveries.ts'
import type { Consumer } from '../../../storage/contract/webhooks.ts'
import type { JobMessage } from '../broker/broker.ts'

/** A job with its message, ready to be pushed. */
export type ReadyJob = Readonly<{ item: Leased; message: JobMessage }>

/** A push that takes longer is slow: it must not use the share of fast consumers. */
export const slowPushMs = 1_000
/** The weight of the newest push in the mean duration. */
const newestWeight = 0.1

export class ConsumerLane {
  consumer: Consumer
  version: number
  delivery: ConsumerDelivery
  secrets: SigningSecrets | null
  /** The queue may have jobs that are due. False: the last lease got all of them. */
  mayHaveJobs = true
  /** Another request changed the consumer: do not push with the old URL or token. */
  isStale = false
  /** The consumer was deleted, or is pulled now. */
  isRemoved = false
  /** This server pushes the probe of a half-open breaker. */
  isProbing = false
  /** Leased jobs whose messages are not loaded. */
  readonly pending: Leased[] = []
  readonly ready: ReadyJob[] = []
  /** When each push in progress started (performance.now), the oldest first. */
  readonly inFlight = new Map<string, number>()
  /** Payloads of ready jobs and pushes in progress. */
  payloadBytes = 0
  meanMs = 0
  counts: BreakerCounts
  /** The last failed attempt of this server. Null: none failed since the start. */
  lastFailedAt: Instant | null = null
  /** A change of the health that is not stored yet. */
  isHealthDirty = false
  /** The servers that share the limits of the consumer. */
  servers = 1
  #tokens = 1
  #tokensAt: Instant

  constructor(stored: StoredDelivery, now: Instant) {
    this.consumer = stored.consumer
    this.version = stored.version
    this.delivery = stored.delivery ?? newDelivery
    this.secrets = stored.secrets
    this.counts = newBreakerCounts(now)
    this.#tokensAt = now
  }

  /** Takes over what another request or server stored. A read that is older than the lane changes nothing. */
  update(stored: StoredDelivery, now: Instant): void {
    const isSame = stored.consumer.number === this.consumer.number
    if (!isSame || stored.consumer.changedAt >= this.consumer.changedAt) this.consumer = stored.consumer
    if (isSame && stored.version <= this.version) return
    const delivery = stored.delivery ?? newDelivery
    // The failures before the breaker closed must not open it again at once.
    const isClosedNow = this.delivery.breaker.state !== 'closed' && delivery.breaker.state === 'closed'
    if (isClosedNow) this.counts = newBreakerCounts(now)
    this.version = stored.version
    this.delivery = delivery
    this.secrets = stored.secrets
    this.isHealthDirty = false
    this.mayHaveJobs = true
  }

  get isSlow(): boolean {
    if (this.meanMs > slowPushMs) return true
    const [oldest] = this.inFlight.values()
    return oldest !== undefined && performance.now() - oldest > slowPushMs
  }

  /** Jobs in the memory of this server that no push has started for. */
  get waiting(): number {
    return this.pending.length + this.ready.length
  }

  recordDuration(durationMs: number): void {
    this.meanMs = this.meanMs === 0 ? durationMs : this.meanMs + newestWeight * (durationMs - this.meanMs)
  }

  /** The share of this server in the limits of the consumer. Null: there is none. */
  get pushesPerSecondMax(): number | null {
    const { pushesPerSecondMax } = this.delivery.settings
    return pushesPerSecondMax === null ? null : pushesPerSecondMax / this.servers
  }

  get parallelMax(): number | null {
    const { parallelMax } = this.delivery.settings
    return parallelMax === null ? null : Math.max(Math.floor(parallelMax / this.servers), 1)
  }

  /** Takes one push out of the budget of pushes per second. False: the budget is used up. */
  tryTakeToken(now: Instant): boolean {
    const rate = this.pushesPerSecondMax
    if (rate === null) return true
    const elapsedUs = Math.max(now - this.#tokensAt, 0)
    this.#tokensAt = now
    // A burst of a tenth of a second, and at least one push.
    this.#tokens = Math.min(this.#tokens + (elapsedUs / usPerSecond) * rate, Math.max(rate / 10, 1))
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }

  /** The time that a push may take so that it ends before the lease of its job does. */
  pushTimeoutMs(job: Leased, now: Instant, timeoutMsDefault: number): number {
    const wanted = Math.min(this.delivery.settings.timeoutMs ?? timeoutMsDefault, timeoutMsDefault)
    const left = (job.lease.deadline - now) / usPerMs - answerMs
    return left < wanted && left < timeoutMsDefault ? Math.floor(left) : wanted
  }
}

/** The time between the end of a push and the write of its outcome. */
const answerMs = 250
