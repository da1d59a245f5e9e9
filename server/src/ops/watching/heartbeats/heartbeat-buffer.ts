/**
 * Heartbeats that arrived over HTTP and are not stored yet.
 *
 * 10,000 workers send 1,000 heartbeats per second. A heartbeat that only says "still running" is stored with
 * the next pass, together with all others: a crash of the server loses a few seconds, and the worker repeats
 * it. A heartbeat that changes the state of its worker is stored before it is answered: a lost STOPPED would
 * become an alarm. Heartbeats that arrive during a write share the next one.
 */
import { type Instant, usPerSecond } from '../../../core/time/instant.ts'
import type { Heartbeat, WorkerStatus } from '../../../core/watching/worker.ts'
import { KnownError } from '../../../errors.ts'
import type { RecordedHeartbeats } from '../../../storage/contract/workers.ts'
import { keyOfWorker } from '../../../storage/shared/rows/worker-rows.ts'

export interface HeartbeatBuffer {
  /** Resolves when the heartbeats that change a state are stored. Returns the positions of refused ones. */
  add(heartbeats: readonly Heartbeat[]): Promise<readonly number[]>
  /** Stores everything. Rejects if the store fails; then the heartbeats stay in the buffer. */
  flush(): Promise<void>
}

type Known = Readonly<{ status: WorkerStatus; at: Instant }>

/** Another server may know nothing of this worker, so a late heartbeat is stored at once. */
const lateUs = 20 * usPerSecond
const forgetUs = 600 * usPerSecond
/** So that a batch does not hold up the other writes of the store. */
const perWrite = 1_000
/** Changes of one worker that wait for the store. */
const waitingPerWorkerMax = 4

export function createHeartbeatBuffer(
  record: (heartbeats: readonly Heartbeat[]) => Promise<RecordedHeartbeats>,
  workersMax: number,
): HeartbeatBuffer {
  const buffer = new WaitingHeartbeats(record, workersMax)
  return {
    add: (heartbeats) => buffer.add(heartbeats),
    flush: async () => void (await buffer.flush()),
  }
}

class WaitingHeartbeats {
  readonly #record: (heartbeats: readonly Heartbeat[]) => Promise<RecordedHeartbeats>
  readonly #workersMax: number
  /** The newest heartbeat of each worker at this server. */
  readonly #known = new Map<string, Known>()
  #waiting = new Map<string, Heartbeat[]>()
  #current: Promise<ReadonlySet<string>> = Promise.resolve(new Set())
  #next: Promise<ReadonlySet<string>> | undefined

  constructor(record: (heartbeats: readonly Heartbeat[]) => Promise<RecordedHeartbeats>, workersMax: number) {
    this.#record = record
    this.#workersMax = workersMax
  }

  async add(heartbeats: readonly Heartbeat[]): Promise<readonly number[]> {
    const urgent = heartbeats.filter((each) => this.#isUrgent(each))
    if (urgent.length > 0 && this.#waiting.size >= this.#workersMax)
      throw new KnownError('SERVER_OVERLOADED', 'too many heartbeats wait for the store')
    for (const heartbeat of heartbeats) this.#put(heartbeat)
    // A heartbeat whose write fails is urgent again when it is repeated, so it is not known yet.
    const isUrgent = new Set(urgent)
    for (const heartbeat of heartbeats) if (!isUrgent.has(heartbeat)) this.#know(heartbeat)
    if (urgent.length === 0) return []
    const refused = await this.flush()
    for (const heartbeat of urgent) if (!refused.has(keyOfWorker(heartbeat))) this.#know(heartbeat)
    return heartbeats.flatMap((each, position) => (refused.has(keyOfWorker(each)) ? [position] : []))
  }

  /** Returns the keys of refused workers. */
  flush(): Promise<ReadonlySet<string>> {
    this.#next ??= this.#current
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined
        this.#current = this.#write()
        return this.#current
      })
    return this.#next
  }

  async #write(): Promise<ReadonlySet<string>> {
    const heartbeats = [...this.#waiting.values()].flat()
    this.#waiting = new Map()
    const refused = new Set<string>()
    for (let at = 0; at < heartbeats.length; at += perWrite) {
      const part = heartbeats.slice(at, at + perWrite)
      try {
        for (const position of (await this.#record(part)).refused) {
          const heartbeat = part[position]
          if (heartbeat !== undefined) refused.add(keyOfWorker(heartbeat))
        }
      } catch (error) {
        this.#putBack(heartbeats.slice(at))
        throw error
      }
    }
    for (const key of refused) this.#known.delete(key)
    return refused
  }

  /** Before those that arrived in the meantime. */
  #putBack(heartbeats: readonly Heartbeat[]): void {
    const newer = [...this.#waiting.values()].flat()
    this.#waiting = new Map()
    for (const heartbeat of [...heartbeats, ...newer]) this.#put(heartbeat)
  }

  #put(heartbeat: Heartbeat): void {
    const key = keyOfWorker(heartbeat)
    const before = this.#waiting.get(key)
    const isSame = before?.at(-1)?.status === heartbeat.status
    if (before === undefined) this.#waiting.set(key, [heartbeat])
    else if (isSame || before.length >= waitingPerWorkerMax) before[before.length - 1] = heartbeat
    else before.push(heartbeat)
  }

  #isUrgent(heartbeat: Heartbeat): boolean {
    const before = this.#known.get(keyOfWorker(heartbeat))
    const { status, receivedAt } = heartbeat
    return before === undefined || before.status !== status || receivedAt - before.at >= lateUs
  }

  #know(heartbeat: Heartbeat): void {
    const { status, receivedAt } = heartbeat
    this.#known.set(keyOfWorker(heartbeat), { status, at: receivedAt })
    if (this.#known.size <= 2 * this.#workersMax) return
    for (const [key, { at }] of this.#known) if (receivedAt - at > forgetUs) this.#known.delete(key)
  }
}
