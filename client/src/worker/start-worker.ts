/**
 * The loop of a worker: lease as many items as fit, run the handler for each, and settle them at the server.
 *
 * All state is bounded: at most `concurrency` + `prefetch` items are leased, and if too many items wait to be
 * settled, the worker leases no more. A stopped worker leaves no timer and no call behind.
 */

import type { Client } from '../client.ts'
import { computeBackoffMs } from '../http/backoff.ts'
import { type Clock, sleep } from '../http/clock.ts'
import type { LeasedItem } from '../queues/item.ts'
import type { ActiveItem } from './active-item.ts'
import type { Heartbeat } from './heartbeat.ts'
import { ItemLeaseRenewer } from './item-lease-renewer.ts'
import { type RetryRequest, toRetryRequest } from './outcome.ts'
import { type Settlement, type SettlementOutcome, Settler } from './settler.ts'
import { isUnknownCall } from './unknown-call.ts'
import type { ErrorContext, Handler, Worker, WorkerCounts, WorkOptions } from './worker.ts'
import { startWorkerHeartbeat } from './worker-heartbeat.ts'

export type WorkerParts = Readonly<{
  client: Pick<
    Client,
    'lease' | 'cancelLease' | 'complete' | 'retry' | 'extend' | 'sendHeartbeats' | 'getQueueStats'
  >
  clock: Clock
  random: () => number
  queue: string
  handler: Handler
  options: WorkOptions
}>

const leaseBatchMax = 1_000
const backlogMin = 1_000
/**
 * After the stop's deadline: time for handlers to react to their signal, and for the last calls to settle
 * items.
 */
const abortedHandlersMsMax = 1_000
const lastSettlementsMsMax = 3_000
/**
 * How often a stopping worker sends `cancelLease`. Several times, because the request can arrive before the
 * lease call that it should cancel, or the lease call can wait at another server.
 */
const cancelsMax = 10
const cancelIntervalMs = 50
const cancelMsMax = 1_000
/** A lease call that returns nothing sooner than this did not wait for items. */
const emptyLeaseMsMin = 10
const emptyLeaseDelayMs = 100

export function startWorker(parts: WorkerParts): Worker {
  const loop = new WorkerLoop(parts)
  const { signal } = parts.options
  const stop: Worker['stop'] = (options) => loop.stop(options)
  const onAbort = (): void => void stop()
  if (signal?.aborted) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  void loop.stopped.then(() => signal?.removeEventListener('abort', onAbort))
  return { clientId: loop.clientId, stopped: loop.stopped, stop, counts: () => loop.counts() }
}

class WorkerLoop {
  readonly clientId: string
  readonly stopped: Promise<void>
  readonly #parts: WorkerParts
  readonly #concurrency: number
  readonly #prefetch: number
  readonly #backoffMsMax: number
  readonly #backlogMax: number
  readonly #settler: Settler
  readonly #renewer: ItemLeaseRenewer
  readonly #heartbeat: Heartbeat | undefined
  readonly #counts = { leased: 0, completed: 0, retried: 0, lost: 0, unknown: 0 }
  /** Leased items that wait for a free handler. */
  readonly #prefetched: ActiveItem[] = []
  readonly #running = new Set<ActiveItem>()
  /** Resolves when the last lease call has ended after a stop. */
  readonly #leasingEnded: Promise<void>
  /**
   * Aborts the lease call in progress. Its items stay leased until their leases end, so this is the last
   * resort.
   */
  readonly #leaseAbort = new AbortController()
  /** Ends waits between lease calls. */
  readonly #stopping = new AbortController()
  /** The deadline of a stop has passed. */
  readonly #stopDeadline = new AbortController()
  #isLeasing = false
  #wake: () => void = () => {}
  #resolveStopped: () => void = () => {}

  constructor(parts: WorkerParts) {
    const { client, clock, random, queue, options } = parts
    const { concurrency = 10, prefetch = 0, backoffMsMax = 5_000 } = options
    this.#parts = parts
    this.clientId = options.clientId ?? `worker-${createId(random)}`
    this.#concurrency = concurrency
    this.#prefetch = prefetch
    this.#backoffMsMax = backoffMsMax
    this.#backlogMax = Math.max(backlogMin, concurrency)
    this.stopped = new Promise((resolve) => {
      this.#resolveStopped = resolve
    })
    this.#settler = new Settler({
      client,
      clock,
      random,
      queue,
      batchMax: Math.min(Math.max(options.completeBatchMax ?? 200, 1), 1_000),
      lingerMs: options.completeLingerMs ?? 5,
      backoffMsMax,
      onSettled: (settlement, outcome) => this.#onSettled(settlement, outcome),
      onError: (error, during) => this.#reportError(error, { during }),
    })
    this.#renewer = new ItemLeaseRenewer({
      client,
      clock,
      queue,
      isExtending: options.isExtending ?? true,
      onLost: (active) => this.#onLost(active),
      onError: (error) => this.#reportError(error, { during: 'extend' }),
    })
    this.#heartbeat = this.#startHeartbeat()
    this.#leasingEnded = this.#leaseUntilStopped()
  }

  #startHeartbeat(): Heartbeat | undefined {
    const { client, clock, queue, options } = this.#parts
    if (options.heartbeat === undefined) return undefined
    const onError = (error: unknown): void => this.#reportError(error, { during: 'heartbeat' })
    const { clientId } = this
    return startWorkerHeartbeat({ client, clock, queue, clientId, options: options.heartbeat, onError })
  }

  counts(): WorkerCounts {
    return {
      ...this.#counts,
      running: this.#running.size,
      prefetched: this.#prefetched.length,
      settling: this.#settler.size,
    }
  }

  async stop({ withinMs = 30_000 }: Readonly<{ withinMs?: number }> = {}): Promise<void> {
    const { clock } = this.#parts
    if (!this.#stopping.signal.aborted) void this.#finish()
    const timer = clock.setTimer(() => this.#stopDeadline.abort(), withinMs)
    await this.stopped
    clock.clearTimer(timer)
  }

  async #leaseUntilStopped(): Promise<void> {
    const { clock, random } = this.#parts
    let failures = 0
    while (!this.#stopping.signal.aborted) {
      const countMax = this.#leaseCountMax()
      if (countMax <= 0) {
        await this.#waitUntilWoken()
        continue
      }
      try {
        await this.#leaseOnce(countMax)
        failures = 0
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        failures++
        this.#reportError(error, { during: 'lease' })
        const delayMs = computeBackoffMs({ msMin: 100, msMax: this.#backoffMsMax }, failures, random)
        await sleep(clock, delayMs, this.#stopping.signal).catch(() => {})
      }
    }
  }

  /** With a prefetch, lease only after half of it is used up: fewer and larger calls. */
  #leaseCountMax(): number {
    const free = this.#concurrency + this.#prefetch - this.#running.size - this.#prefetched.length
    if (free < Math.max(this.#prefetch / 2, 1)) return 0
    return Math.min(free, this.#backlogMax - this.#settler.size, leaseBatchMax)
  }

  async #leaseOnce(countMax: number): Promise<void> {
    const { client, clock, queue, options } = this.#parts
    const { waitMs = 5_000 } = options
    const startedAtMs = clock.elapsedMs()
    this.#isLeasing = true
    const { partition, items, leaseMsLeft } = await client
      .lease(queue, {
        clientId: this.clientId,
        countMax,
        waitMs,
        signal: this.#leaseAbort.signal,
        retriesMax: 0,
      })
      .finally(() => {
        this.#isLeasing = false
      })
    const leaseEndsAtMs = clock.elapsedMs() + leaseMsLeft
    const leased = items.map((item) => {
      const controller = new AbortController()
      return { item, partition, controller, leaseEndsAtMs, isLost: false }
    })
    this.#counts.leased += leased.length
    this.#renewer.add(leased)
    this.#prefetched.push(...leased)
    this.#startHandlers()
    if (items.length === 0) await this.#onEmptyLease(clock.elapsedMs() - startedAtMs)
  }

  async #onEmptyLease(durationMs: number): Promise<void> {
    const { clock, options } = this.#parts
    const isIdle = this.#running.size === 0 && this.#settler.size === 0 && !this.#stopping.signal.aborted
    if (isIdle) callSafely(() => options.onIdle?.())
    // Slow down if the server returned nothing without waiting: this loop would otherwise spin.
    if (durationMs < emptyLeaseMsMin) await sleep(clock, emptyLeaseDelayMs, this.#stopping.signal)
  }

  #startHandlers(): void {
    while (this.#running.size < this.#concurrency) {
      const next = this.#prefetched.shift()
      if (next === undefined) return
      this.#running.add(next)
      void this.#runHandler(next)
    }
  }

  async #runHandler(active: ActiveItem): Promise<void> {
    const { queue, handler } = this.#parts
    const { item, partition, controller } = active
    let settlement: Settlement
    try {
      await handler(item, { queue, partition, signal: controller.signal })
      settlement = { active, retry: null, thrown: undefined }
    } catch (thrown) {
      if (!active.isLost) this.#reportError(thrown, { during: 'handler', item })
      settlement = { active, retry: this.#decideRetry(item, thrown), thrown }
    }
    this.#running.delete(active)
    this.#renewer.remove(active)
    this.#heartbeat?.recordMessage()
    if (settlement.retry?.isDead === false) this.#heartbeat?.recordRetry(settlement.thrown)
    if (!active.isLost) this.#settler.add(settlement)
    this.#startHandlers()
    this.#wake()
  }

  #decideRetry(item: LeasedItem, thrown: unknown): RetryRequest {
    const { clock, options } = this.#parts
    let retry: RetryRequest = { isDead: false, failure: null }
    callSafely(() => {
      // First without `retryDelayMs`: if that callback throws, the failure itself must still be reported.
      retry = toRetryRequest(thrown, clock.nowMs())
      retry = toRetryRequest(thrown, clock.nowMs(), () => options.retryDelayMs?.(item, thrown))
    })
    return retry
  }

  #onSettled({ active, retry, thrown }: Settlement, outcome: SettlementOutcome): void {
    const { options } = this.#parts
    if (outcome === 'lost') this.#counts.lost++
    else if (outcome === 'unknown') this.#counts.unknown++
    else if (retry === null) this.#counts.completed++
    else this.#counts.retried++
    callSafely(() => {
      if (outcome === 'lost') options.onLost?.(active.item)
      else if (outcome === 'done' && retry === null) options.onCompleted?.(active.item)
      else if (outcome === 'done') options.onRetried?.(active.item, thrown)
    })
    this.#wake()
  }

  #onLost(active: ActiveItem): void {
    active.isLost = true
    this.#counts.lost++
    active.controller.abort(new Error(`the lease of item ${active.item.id} was lost`))
    const index = this.#prefetched.indexOf(active)
    if (index !== -1) this.#prefetched.splice(index, 1)
    callSafely(() => this.#parts.options.onLost?.(active.item))
    this.#wake()
  }

  #reportError(error: unknown, context: ErrorContext): void {
    callSafely(() => (this.#parts.options.onError ?? warn)(error, context))
  }

  #waitUntilWoken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  async #finish(): Promise<void> {
    this.#stopping.abort()
    this.#wake()
    void this.#heartbeat?.shutDown()
    if (this.#isLeasing) void this.#endLeaseCall()
    const deadline = this.#stopDeadline.signal
    if (!(await isDoneBefore(this.#leasingEnded, deadline))) this.#leaseAbort.abort()
    await this.#leasingEnded
    const handled = this.#waitUntilHandled()
    if (!(await isDoneBefore(handled, deadline))) await this.#abortHandlers(handled)
    for (const active of this.#running) active.isLost = true
    const settled = this.#settler.waitUntilEmpty()
    if (!(await isDoneBefore(settled, deadline))) await this.#isDoneWithin(settled, lastSettlementsMsMax)
    this.#renewer.close()
    this.#settler.close()
    await this.#heartbeat?.stop()
    this.#resolveStopped()
  }

  /**
   * Makes the server answer the lease call in progress now. The call itself is not aborted, because its
   * answer may already carry items, which would stay leased without a worker. Never rejects.
   */
  async #endLeaseCall(): Promise<void> {
    const { client, queue } = this.#parts
    const { signal } = this.#stopDeadline
    const options = { retriesMax: 0, answerMsMax: cancelMsMax, signal }
    for (let cancels = 1; cancels <= cancelsMax; cancels++) {
      try {
        await client.cancelLease(queue, this.clientId, options)
      } catch (error) {
        // A server without this call answers the lease call after `waitMs`.
        if (isUnknownCall(error) || signal.aborted) return
      }
      if (await this.#isDoneWithin(this.#leasingEnded, cancelIntervalMs * cancels)) return
    }
    // The lease call waits at a server that `cancelLease` does not reach. That server notices the closed
    // connection and returns the items that it leases for the call.
    this.#leaseAbort.abort()
  }

  async #waitUntilHandled(): Promise<void> {
    while (this.#running.size > 0 || this.#prefetched.length > 0) await this.#waitUntilWoken()
  }

  /** Returns items that were not started to the queue, and gives running handlers a moment to react. */
  async #abortHandlers(handled: Promise<void>): Promise<void> {
    const reason = new Error('the worker is stopping, and the handler did not finish in time')
    for (const active of this.#prefetched.splice(0)) {
      this.#renewer.remove(active)
      this.#settler.add({ active, retry: { isDead: false, failure: null }, thrown: reason })
    }
    for (const { controller } of this.#running) controller.abort(reason)
    await this.#isDoneWithin(handled, abortedHandlersMsMax)
  }

  async #isDoneWithin(done: Promise<unknown>, ms: number): Promise<boolean> {
    const { clock } = this.#parts
    const timeout = new AbortController()
    const timer = clock.setTimer(() => timeout.abort(), ms)
    const isDone = await isDoneBefore(done, timeout.signal)
    clock.clearTimer(timer)
    return isDone
  }
}

/**
 * Calls a callback of the user. Its errors must not break the worker, and `onError` itself may have thrown.
 */
function callSafely(callback: () => void): void {
  try {
    callback()
  } catch {
    // There is no further place to report to.
  }
}

/** False if the signal aborts first. */
function isDoneBefore(done: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const onAbort = (): void => resolve(false)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    void done.then(() => {
      signal.removeEventListener('abort', onAbort)
      resolve(true)
    })
  })
}

/** Errors of handlers are not written: the server records them with their items. */
function warn(error: unknown, { during }: ErrorContext): void {
  if (during === 'handler') return
  const message = error instanceof Error ? error.message : String(error)
  console.warn(`redrive worker: ${during} failed, will retry: ${message}`)
}

/** Not a secret: the id only has to differ from the ids of other workers of the queue. */
function createId(random: () => number): string {
  return Array.from({ length: 4 }, () =>
    Math.floor(random() * 36 ** 5)
      .toString(36)
      .padStart(5, '0'),
  ).join('')
}
