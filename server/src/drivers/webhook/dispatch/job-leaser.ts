/**
 * Leases jobs for all consumers that can use them, in one write. Consumers that answer fast get jobs in
 * advance, about as many as they are sent in a quarter of a second.
 */

import type { Leased } from '../../../core/items/item.ts'
import { type Clock, type Instant, usPerMs } from '../../../core/time/instant.ts'
import { probeAt } from '../../../core/webhook/delivery/breaker.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import type { ConsumerLane } from './consumer-lane.ts'
import type { DispatchRules } from './delivery-rules.ts'
import type { HealthKeeper } from './health-keeper.ts'
import type { LaneRegistry } from './lane-registry.ts'
import type { MessageLoader } from './message-loader.ts'
import type { OutcomeWriter } from './outcome-writer.ts'
import type { PushScheduler } from './push-scheduler.ts'

export type LeaserParts = Readonly<{
  registry: LaneRegistry
  scheduler: PushScheduler
  loader: MessageLoader
  health: HealthKeeper
  outcomes: OutcomeWriter
  engine: () => Pick<Engine, 'write'>
  clock: Clock
  rules: DispatchRules
  holder: string
  onError(error: unknown): void
}>

type Wish = Readonly<{ lane: ConsumerLane; count: number; isProbe: boolean }>

/** Jobs that one write leases. */
const jobsMax = 1_000
/** Jobs that a consumer has in memory in advance. */
const aheadMax = 400
const aheadMs = 250
/** Jobs of a consumer that has not answered yet: it may hang. */
const firstMax = 32
/** Unwritten outcomes above this number stop the leasing: the store is slower than the receivers. */
const unwrittenMax = 5_000
const retryMs = 500
/** A job that has waited this long in memory goes back: the rest of its lease would cut its push short. */
const waitMsMax = 1_500

export class JobLeaser {
  readonly #parts: LeaserParts
  #leasing: Promise<void> | undefined
  #pausedUntilMs = 0

  constructor(parts: LeaserParts) {
    this.#parts = parts
  }

  countQueued(): number {
    let queued = 0
    for (const lane of this.#parts.registry.lanes) queued += lane.waiting
    return queued
  }

  /** Starts to lease, unless a lease is in progress or nothing is wanted. */
  lease(onLeased: () => void): void {
    if (this.#leasing !== undefined || performance.now() < this.#pausedUntilMs) return
    const wishes = this.#listWishes()
    if (wishes.length === 0) return
    this.#leasing = this.#lease(wishes).finally(() => {
      this.#leasing = undefined
      onLeased()
    })
  }

  /** Returns the jobs of consumers that get no pushes now, and jobs that have waited too long. */
  returnUnwanted(): void {
    const { registry, scheduler, clock } = this.#parts
    const now = clock.now()
    for (const lane of registry.removedLanes) this.returnAll(lane)
    for (const lane of registry.lanes) {
      if (lane.waiting === 0) continue
      if (scheduler.limitOf(lane) === 0 && !lane.isStale) this.returnAll(lane)
      else this.#returnOld(lane, now)
    }
  }

  /** Resolves when the jobs that have not started are on their way back to the store. */
  async stop(): Promise<void> {
    await this.#leasing
    const { lanes, removedLanes } = this.#parts.registry
    for (const lane of [...lanes, ...removedLanes]) this.returnAll(lane)
  }

  returnAll(lane: ConsumerLane): void {
    for (const item of lane.pending.splice(0)) this.#return(lane, item)
    for (const job of lane.ready.splice(0)) {
      this.#parts.loader.release(lane, job)
      this.#return(lane, job.item)
    }
    if (lane.inFlight.size === 0) this.#parts.health.cancelProbe(lane)
  }

  #returnOld(lane: ConsumerLane, now: Instant): void {
    const oldest = lane.ready[0]?.item ?? lane.pending[0]
    if (oldest === undefined || now - oldest.updatedAt < waitMsMax * usPerMs) return
    this.returnAll(lane)
  }

  #return(lane: ConsumerLane, { id, lease }: Leased): void {
    const { queue } = lane.consumer
    lane.mayHaveJobs = true
    this.#parts.outcomes.add({
      queue,
      itemId: id,
      leaseDeadline: lease.deadline,
      outcome: { kind: 'returned' },
      attempt: null,
      payloadBytes: 0,
    })
  }

  #listWishes(): Wish[] {
    const { registry, outcomes, rules, clock } = this.#parts
    if (outcomes.size > unwrittenMax) return []
    const now = clock.now()
    const wishes: Wish[] = []
    let room = Math.min(jobsMax, rules.queuedMax - this.countQueued())
    for (const lane of registry.lanes) {
      if (room <= 0) break
      if (!lane.mayHaveJobs || lane.isStale) continue
      const { breaker, paused, disabled } = lane.delivery
      if (paused !== null || disabled !== null) continue
      const isProbe = breaker.state !== 'closed'
      const count = isProbe ? this.#countProbes(lane, now) : Math.min(this.#countAhead(lane), room)
      if (count <= 0) continue
      room -= count
      wishes.push({ lane, count, isProbe })
    }
    return wishes
  }

  #countProbes(lane: ConsumerLane, now: Instant): number {
    const at = probeAt(lane.delivery.breaker)
    const isBusy = lane.isProbing || lane.waiting > 0 || lane.inFlight.size > 0
    return isBusy || at === null || now < at ? 0 : 1
  }

  /** How many jobs the consumer should get in addition to those that it has. */
  #countAhead(lane: ConsumerLane): number {
    const { scheduler } = this.#parts
    const limit = Math.min(scheduler.limitOf(lane), Math.max(scheduler.free, 1) + lane.inFlight.size)
    const free = Math.max(limit - lane.inFlight.size, 0)
    if (lane.isSlow || lane.pushesPerSecondMax !== null) {
      const perSecond = lane.pushesPerSecondMax ?? Number.POSITIVE_INFINITY
      const canStart = scheduler.canStart(lane) ? Math.min(free, Math.max(Math.ceil(perSecond / 4), 1)) : 0
      return canStart - lane.waiting
    }
    if (lane.meanMs === 0) return Math.min(free, firstMax) - lane.waiting
    const wanted = Math.min(free + (limit * aheadMs) / Math.max(lane.meanMs, 1), aheadMax)
    // Many small leases cost more than few large ones.
    return lane.waiting > wanted / 2 ? 0 : Math.ceil(wanted - lane.waiting)
  }

  async #lease(wishes: readonly Wish[]): Promise<void> {
    const { engine, clock, holder, loader, registry, onError } = this.#parts
    for (const { lane } of wishes) lane.mayHaveJobs = false
    try {
      const now = clock.now()
      const results = await engine().write(
        wishes.map(({ lane, count }) => ({
          op: 'lease' as const,
          queue: lane.consumer.queue,
          partition: 0,
          holders: new Array<string>(count).fill(holder),
          now,
        })),
      )
      for (const [at, wish] of wishes.entries()) await this.#take(wish, results[at] ?? [])
      loader.notePending()
    } catch (error) {
      for (const { lane } of wishes) lane.mayHaveJobs = true
      this.#pausedUntilMs = performance.now() + retryMs
      if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') await registry.refresh(true)
      else onError(error)
    }
  }

  async #take({ lane, count, isProbe }: Wish, items: readonly Leased[]): Promise<void> {
    // Fewer jobs than asked for: there are no more.
    if (items.length >= count) lane.mayHaveJobs = true
    if (items.length === 0) return
    if (isProbe && !(await this.#parts.health.tryStartProbe(lane))) {
      for (const item of items) this.#return(lane, item)
      return
    }
    lane.pending.push(...items)
  }
}
