import type { HeartbeatState, KafkaWorkerOptions, WorkerSettings } from './options.ts'
import type { WorkerEvents } from './partitions/partition-parts.ts'

export type HeartbeatFacts = Readonly<{
  atMs: number
  isStopping: boolean
  lastMessageAtMs: number | null
  lag: number
}>

/** Sends the state of the worker regularly, and once more when it stops. A failed send is not repeated. */
export class HeartbeatSender {
  readonly #heartbeat: KafkaWorkerOptions['heartbeat']
  readonly #settings: WorkerSettings
  readonly #events: WorkerEvents
  readonly #read: () => HeartbeatFacts
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(
    heartbeat: KafkaWorkerOptions['heartbeat'],
    settings: WorkerSettings,
    events: WorkerEvents,
    read: () => HeartbeatFacts,
  ) {
    this.#heartbeat = heartbeat
    this.#settings = settings
    this.#events = events
    this.#read = read
  }

  start(): void {
    if (this.#heartbeat === undefined) return
    this.sendNow()
    this.#timer = setInterval(() => this.sendNow(), this.#settings.heartbeatMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  sendNow(): void {
    void this.#send()
  }

  async #send(): Promise<void> {
    if (this.#heartbeat === undefined) return
    const { atMs, isStopping, lastMessageAtMs, lag } = this.#read()
    const state: HeartbeatState = {
      type: this.#settings.type,
      instance_id: this.#settings.instanceId,
      timestamp: new Date(atMs).toISOString(),
      status: isStopping ? 'SHUTTING_DOWN' : 'RUNNING',
      last_message_at: lastMessageAtMs === null ? null : new Date(lastMessageAtMs).toISOString(),
      consumer_lag: lag,
    }
    try {
      await this.#heartbeat.send(state)
    } catch (error) {
      this.#events.onError(error, { during: 'heartbeat' })
    }
  }
}
