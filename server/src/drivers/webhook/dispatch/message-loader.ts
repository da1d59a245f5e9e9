/**
 * Loads the messages of leased jobs, many in one read. The payloads in memory are bounded: a consumer may
 * hold as many bytes as are free, so one with large payloads that does not answer leaves room for others.
 */
import type { Leased } from '../../../core/items/item.ts'
import type { WebhookBroker } from '../broker/broker.ts'
import type { ConsumerLane, ReadyJob } from './consumer-lane.ts'
import type { DispatchRules } from './delivery-rules.ts'
import type { PushScheduler } from './push-scheduler.ts'

export type LoaderParts = Readonly<{
  broker: Pick<WebhookBroker, 'readJobMessages'>
  scheduler: PushScheduler
  rules: Pick<DispatchRules, 'payloadBytesMax'>
  onError(error: unknown): void
  onLoaded(): void
}>

type LaneJob = Readonly<{ lane: ConsumerLane; item: Leased }>

const jobsMax = 500
/** The payloads that one read should return. */
const readBytes = 8 * 1_024 * 1_024
const retryMs = 200

export class MessageLoader {
  readonly #parts: LoaderParts
  #bytes = 0
  /** How many messages are read at once; at most four times as many as before: they may be larger. */
  #countMax = 16
  #loading: Promise<void> | undefined
  #hasPending = false

  constructor(parts: LoaderParts) {
    this.#parts = parts
  }

  /** Jobs were leased. */
  notePending(): void {
    this.#hasPending = true
  }

  /** The push of a job has ended, or the job was returned. */
  release(lane: ConsumerLane, { message }: ReadyJob): void {
    lane.payloadBytes -= message.payload.byteLength
    this.#bytes -= message.payload.byteLength
    this.#hasPending = true
  }

  load(lanes: Iterable<ConsumerLane>): void {
    if (this.#loading !== undefined || !this.#hasPending) return
    const jobs = this.#choose(lanes)
    if (jobs.length === 0) return
    this.#loading = this.#read(jobs).finally(() => {
      this.#loading = undefined
      this.#parts.onLoaded()
    })
  }

  async waitUntilIdle(): Promise<void> {
    await this.#loading
  }

  /** One job of each consumer in turn. */
  #choose(lanes: Iterable<ConsumerLane>): LaneJob[] {
    const chosen: LaneJob[] = []
    const free = this.#parts.rules.payloadBytesMax - this.#bytes
    // A consumer without a payload in memory may always load one.
    const open = [...lanes].filter(
      ({ pending, payloadBytes }) => pending.length > 0 && (payloadBytes < free || payloadBytes === 0),
    )
    this.#hasPending = open.length > 0
    while (open.length > 0 && chosen.length < this.#countMax) {
      for (let at = open.length - 1; at >= 0 && chosen.length < this.#countMax; at--) {
        const lane = open[at] as ConsumerLane
        const item = lane.pending.shift()
        if (item === undefined) open.splice(at, 1)
        else chosen.push({ lane, item })
      }
    }
    return chosen
  }

  async #read(jobs: readonly LaneJob[]): Promise<void> {
    const { broker, scheduler, onError } = this.#parts
    try {
      const messages = await broker.readJobMessages(jobs.map(({ item }) => item))
      let bytes = 0
      for (const [at, { lane, item }] of jobs.entries()) {
        const message = messages[at]
        if (message === undefined) continue
        bytes += message.payload.byteLength
        lane.payloadBytes += message.payload.byteLength
        lane.ready.push({ item, message })
        scheduler.add(lane)
      }
      this.#bytes += bytes
      const fitting = Math.floor((readBytes * jobs.length) / Math.max(bytes, 1))
      this.#countMax = Math.max(1, Math.min(fitting, 4 * this.#countMax, jobsMax))
    } catch (error) {
      onError(error)
      for (const { lane, item } of jobs) lane.pending.unshift(item)
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}
