/**
 * Heartbeats of a worker, so that Redrive notices when it is missing, idle or stuck. The queue worker sends
 * them with the option `heartbeat`; other workers use `startHeartbeat`.
 *
 * A heartbeat that cannot be sent is reported and not repeated: the next one follows soon. A worker never
 * waits for its heartbeats, but for the last one, which says that it stopped on purpose.
 */
import { type Clock, systemClock } from '../http/clock.ts'

export type WorkerStatus = 'RUNNING' | 'SHUTTING_DOWN' | 'STOPPED'

export type WorkerHeartbeat = Readonly<{
  /** The kind of worker, such as `payout-executor`. */
  type: string
  /** Tells the workers of a type apart. */
  instanceId: string
  /** RFC 3339, by the clock of the worker. */
  timestamp: string
  status: WorkerStatus
  /** When the worker last processed a message; null: not yet. */
  lastMessageAt: string | null
  /** Messages that wait for the worker; null: unknown. */
  consumerLag: number | null
  /** Failed attempts since the worker started, by error. */
  retryCounts: Readonly<Record<string, number>>
}>

/** Rejects if the heartbeat could not be sent. */
export type SendHeartbeat = (heartbeat: WorkerHeartbeat, signal: AbortSignal) => Promise<void>

export type HeartbeatOptions = Readonly<{
  type: string
  instanceId: string
  send: SendHeartbeat
  /** The time between two heartbeats. Default 10,000. */
  intervalMs?: number
  /** Reads how many messages wait for the worker. Default: unknown. */
  readLag?: () => number | null | Promise<number | null>
  clock?: Clock
  /** Called if a heartbeat could not be sent, or the lag not be read. */
  onError?: (error: unknown) => void
}>

export interface Heartbeat {
  /** The worker processed a message. */
  recordMessage(): void
  /** An attempt failed and will be repeated. */
  recordRetry(error: unknown): void
  /** Reports from now on that the worker is shutting down. Never rejects. */
  shutDown(): Promise<void>
  /** Reports that the worker stopped, then sends nothing more. Takes at most 3 s. Never rejects. */
  stop(): Promise<void>
}

const intervalMsDefault = 10_000
/** A heartbeat that takes longer is given up, so that the next one is not late. */
const sendMsMax = 5_000
const lastSendMsMax = 1_500
/** Errors that are counted one by one; all others are `(others)`. */
const errorsMax = 20

export function startHeartbeat(options: HeartbeatOptions): Heartbeat {
  const loop = new HeartbeatLoop(options)
  loop.start()
  return {
    recordMessage: () => loop.recordMessage(),
    recordRetry: (error) => loop.recordRetry(error),
    shutDown: () => loop.report('SHUTTING_DOWN'),
    stop: () => loop.stop(),
  }
}

class HeartbeatLoop {
  readonly #options: HeartbeatOptions
  readonly #clock: Clock
  readonly #retryCounts = new Map<string, number>()
  #status: WorkerStatus = 'RUNNING'
  #lastMessageAtMs: number | null = null
  #timer: unknown
  #stopped: Promise<void> | undefined
  /** The sends, one after the other. */
  #sending: Promise<void> = Promise.resolve()
  #abort = new AbortController()

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  start(): void {
    void this.#sendNext(sendMsMax)
    this.#schedule()
  }

  recordMessage(): void {
    this.#lastMessageAtMs = this.#clock.nowMs()
  }

  recordRetry(error: unknown): void {
    const name = nameError(error)
    const isKnown = this.#retryCounts.has(name) || this.#retryCounts.size < errorsMax
    const label = isKnown ? name : '(others)'
    this.#retryCounts.set(label, (this.#retryCounts.get(label) ?? 0) + 1)
  }

  report(status: WorkerStatus): Promise<void> {
    if (this.#status === 'STOPPED' || this.#stopped !== undefined) return Promise.resolve()
    this.#status = status
    return this.#sendNow(lastSendMsMax)
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#finish()
    return this.#stopped
  }

  async #finish(): Promise<void> {
    this.#clock.clearTimer(this.#timer)
    this.#status = 'STOPPED'
    await this.#sendNow(lastSendMsMax)
  }

  #schedule(): void {
    const { intervalMs = intervalMsDefault } = this.#options
    this.#timer = this.#clock.setTimer(() => {
      void this.#sendNext(Math.min(sendMsMax, intervalMs))
      this.#schedule()
    }, intervalMs)
  }

  /** Gives up the send in progress: its status is no longer true. */
  #sendNow(msMax: number): Promise<void> {
    this.#abort.abort(new Error('a newer heartbeat replaces this one'))
    return this.#sendNext(msMax)
  }

  #sendNext(msMax: number): Promise<void> {
    this.#sending = this.#sending.then(() => this.#sendOnce(msMax))
    return this.#sending
  }

  /** Never rejects. */
  async #sendOnce(msMax: number): Promise<void> {
    const { send, onError } = this.#options
    const abort = new AbortController()
    this.#abort = abort
    const timer = this.#clock.setTimer(() => abort.abort(new Error('the heartbeat took too long')), msMax)
    try {
      const heartbeat = await endWith(this.#describe(), abort.signal)
      await endWith(send(heartbeat, abort.signal), abort.signal)
    } catch (error) {
      try {
        onError?.(error)
      } catch {
        // There is no further place to report to.
      }
    } finally {
      this.#clock.clearTimer(timer)
    }
  }

  async #describe(): Promise<WorkerHeartbeat> {
    const { type, instanceId, readLag, onError } = this.#options
    let consumerLag: number | null = null
    try {
      consumerLag = (await readLag?.()) ?? null
    } catch (error) {
      onError?.(error)
    }
    const lastMs = this.#lastMessageAtMs
    return {
      type,
      instanceId,
      timestamp: new Date(this.#clock.nowMs()).toISOString(),
      status: this.#status,
      lastMessageAt: lastMs === null ? null : new Date(lastMs).toISOString(),
      consumerLag,
      retryCounts: Object.fromEntries(this.#retryCounts),
    }
  }
}

/** Rejects when the signal aborts, also if the call ignores the signal. */
function endWith<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    call.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

function nameError(error: unknown): string {
  const name = error instanceof Error ? error.name : typeof error === 'string' ? error : 'Error'
  return name.slice(0, 100) || 'Error'
}

/**
 * A Redis client of yours: node-redis (`@redis/client`, `redis`) has `sendCommand`, ioredis has `call`. The
 * heartbeats use nothing else of it.
 */
export type RedisClient =
  | Readonly<{ call(command: string, ...args: string[]): Promise<unknown> }>
  | Readonly<{ sendCommand(args: readonly string[]): Promise<unknown> }>

const ttlSeconds = 30
/** A worker that shuts down may be too busy for its next heartbeat. */
const lastTtlSeconds = 60

/**
 * Sends heartbeats to Redis: the key `worker:{type}:{instance_id}` lives for 30 s, or 60 s while the worker
 * shuts down. Retry counts are not sent.
 */
export function sendToRedis(redis: RedisClient): SendHeartbeat {
  return async ({ type, instanceId, timestamp, status, lastMessageAt, consumerLag }) => {
    const value = JSON.stringify({
      timestamp,
      status,
      last_message_at: lastMessageAt,
      consumer_lag: consumerLag,
    })
    const seconds = status === 'RUNNING' ? ttlSeconds : lastTtlSeconds
    const args = ['SET', `worker:${type}:${instanceId}`, value, 'EX', String(seconds)] as const
    await ('call' in redis ? redis.call(...args) : redis.sendCommand(args))
  }
}
