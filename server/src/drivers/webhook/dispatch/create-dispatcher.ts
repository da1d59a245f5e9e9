/**
 * The dispatcher: leases the jobs of push consumers, pushes them, and writes the outcomes.
 *
 *     lease (many consumers, one write) ─▶ load messages ─▶ scheduler ─▶ sender ─▶ outcome writer
 *
 * A job is leased before it is pushed, so another server cannot push it at the same time; a server that is
 * killed leaves leases that end. Jobs are leased in advance only for consumers that answer fast, and only as
 * many as they will get soon. `pump` starts everything that can start. It is called when something changed:
 * jobs became available, messages were loaded, a push ended, outcomes were written, time passed.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../core/time/instant.ts'
import { type DeliveryStatus, readDeliveryStatus } from '../../../core/webhook/delivery/consumer-delivery.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { EngineEvent } from '../../../engine/events.ts'
import { createLoop, type Loop } from '../../../engine/loop.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import type { WebhookBroker } from '../broker/broker.ts'
import type { Sender } from '../push/sender.ts'
import { FigureRecorder } from './delivery-figures.ts'
import type { DispatchRules } from './delivery-rules.ts'
import type { DispatchCounts, Dispatcher } from './dispatcher.ts'
import { HealthKeeper, type HealthObserver } from './health-keeper.ts'
import { JobLeaser } from './job-leaser.ts'
import { JobPusher } from './job-pusher.ts'
import { LaneRegistry } from './lane-registry.ts'
import { MessageLoader } from './message-loader.ts'
import { OutcomeWriter } from './outcome-writer.ts'
import { PushScheduler } from './push-scheduler.ts'

export type DispatcherParts = Readonly<{
  storage: () => StoreReads
  engine: () => Engine
  broker: WebhookBroker
  sender: Sender
  clock: Clock
  rules: DispatchRules
  onError(error: unknown): void
  /** Called for each attempt, with `delivered` or the kind of its failure. */
  onAttempt?(result: string, latencyMs: number): void
  /** A breaker opened or closed, or a consumer was disabled. */
  onHealthChange?: HealthObserver
}>

const tickMs = 50
/** The rational delay: how late a job may be noticed if its announcement was lost. */
const passMs = 1_000

export function createDispatcher(parts: DispatcherParts): Dispatcher {
  return new PushDispatcher(parts)
}

class PushDispatcher implements Dispatcher {
  readonly rules: DispatchRules
  readonly checkUrl: Sender['checkUrl']
  readonly #parts: DispatcherParts
  readonly #scheduler: PushScheduler
  readonly #registry: LaneRegistry
  readonly #figures: FigureRecorder
  readonly #outcomes: OutcomeWriter
  readonly #health: HealthKeeper
  readonly #loader: MessageLoader
  readonly #leaser: JobLeaser
  readonly #pusher: JobPusher
  readonly #loops: readonly Loop[]
  #listeners: (() => void)[] = []
  #isRunning = false
  #isPumpScheduled = false

  constructor(parts: DispatcherParts) {
    const { storage, engine, clock, rules, onError, sender } = parts
    const serverId = randomUUID()
    const pump = () => this.#pump()
    this.#parts = parts
    this.rules = rules
    this.checkUrl = sender.checkUrl
    const scheduler = new PushScheduler(rules.parallelMax)
    const registry = new LaneRegistry({ storage, engine, clock, serverId })
    const figures = new FigureRecorder(serverId, clock, engine)
    const outcomes = new OutcomeWriter({ engine, clock, onError, onWritten: pump })
    const health = new HealthKeeper({ ...parts, registry, outcomes })
    const loader = new MessageLoader({ ...parts, scheduler, onLoaded: pump })
    const shared = { ...parts, registry, scheduler, figures, outcomes, health, loader }
    this.#leaser = new JobLeaser({ ...shared, holder: `push/${serverId}` })
    this.#pusher = new JobPusher(shared)
    this.#scheduler = scheduler
    this.#registry = registry
    this.#figures = figures
    this.#outcomes = outcomes
    this.#health = health
    this.#loader = loader
    this.#loops = [
      createLoop(tickMs, async () => this.#tick(), onError),
      createLoop(passMs, () => this.pass(), onError),
    ]
  }

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    const engine = this.#parts.engine()
    this.#listeners = [
      engine.onAvailable((queue) => this.#onAvailable(queue)),
      engine.onEvent((event) => this.#onEvent(event)),
    ]
    for (const loop of this.#loops) loop.start()
  }

  async pass(): Promise<void> {
    await this.#registry.refresh()
    await this.#registry.findWaiting()
    await this.#registry.countServers()
    this.#health.pass()
    await this.#figures.pass()
    this.#pump()
  }

  counts(): DispatchCounts {
    return {
      consumers: this.#registry.size,
      queued: this.#leaser.countQueued(),
      inFlight: this.#scheduler.inFlight,
      unwritten: this.#outcomes.size,
      servers: this.#registry.servers,
      consumersByStatus: this.#countByStatus(),
    }
  }

  #countByStatus(): Record<DeliveryStatus, number> {
    const counts = { active: 0, held: 0, paused: 0, disabled: 0 }
    for (const { delivery } of this.#registry.lanes) counts[readDeliveryStatus(delivery)] += 1
    return counts
  }

  async stop(graceMs: number): Promise<void> {
    this.#isRunning = false
    for (const stopListening of this.#listeners.splice(0)) stopListening()
    await Promise.all(this.#loops.map((loop) => loop.stop()))
    await this.#loader.waitUntilIdle()
    await this.#leaser.stop()
    await this.#pusher.stop(graceMs)
    await this.#outcomes.waitUntilIdle()
    await this.#figures.pass().catch(this.#parts.onError)
    await this.#parts.sender.close()
  }

  /** Calls in the same turn of the event loop are one call. */
  #pump(): void {
    if (this.#isPumpScheduled || !this.#isRunning) return
    this.#isPumpScheduled = true
    setImmediate(() => this.#pumpNow())
  }

  #pumpNow(): void {
    this.#isPumpScheduled = false
    if (!this.#isRunning) return
    const scheduler = this.#scheduler
    const pump = () => this.#pump()
    const now = this.#parts.clock.now()
    for (let next = scheduler.next(now); next !== undefined; next = scheduler.next(now)) {
      this.#pusher.push(next.lane, next.job, pump)
    }
    this.#loader.load(this.#registry.lanes)
    this.#leaser.lease(pump)
  }

  #tick(): void {
    const scheduler = this.#scheduler
    scheduler.slowInFlight = 0
    for (const lane of this.#registry.lanes) {
      scheduler.add(lane)
      if (lane.isSlow) scheduler.slowInFlight += lane.inFlight.size
    }
    this.#leaser.returnUnwanted()
    this.#pump()
  }

  #onAvailable(queue: string): void {
    const lane = this.#registry.get(queue)
    if (lane === undefined) return
    lane.mayHaveJobs = true
    this.#pump()
  }

  /** A push must not use the URL or the token that a consumer had before. */
  #onEvent(event: EngineEvent): void {
    if (event.type !== 'consumer-changed' && event.type !== 'delivery-changed') return
    if (event.type === 'consumer-changed') for (const lane of this.#registry.lanes) lane.isStale = true
    this.#registry.refresh().then(() => this.#pump(), this.#parts.onError)
  }
}
