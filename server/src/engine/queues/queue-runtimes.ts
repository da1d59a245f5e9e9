/**
 * The queues that this server works with: a runtime each, opened by the first call and kept until the queue
 * is deleted, by this server or by another one.
 */
import type { QueueName } from '../../core/ids/ids.ts'
import type { Instant } from '../../core/time/instant.ts'
import { KnownError } from '../../errors.ts'
import { createQueueNotFoundError } from '../../storage/shared/items/queue-checks.ts'
import { readWithin } from '../timing/deadline.ts'
import { QueueRuntime } from './queue-runtime.ts'
import type { QueueRuntimeParts } from './queue-runtime-parts.ts'

export class QueueRuntimes {
  readonly #parts: Omit<QueueRuntimeParts, 'onGone' | 'onRejected'>
  /** Runtimes by queue name, including those that are still being opened. */
  readonly #all = new Map<string, Promise<QueueRuntime>>()
  readonly #open = new Map<string, QueueRuntime>()
  /** Queues that are held, open or not. Empty unless tests use it. */
  readonly #held = new Set<string>()
  #closed: KnownError | undefined

  constructor(parts: Omit<QueueRuntimeParts, 'onGone' | 'onRejected'>) {
    this.#parts = parts
  }

  /** The runtime of a queue, if it is open. */
  peek(name: QueueName): QueueRuntime | undefined {
    return this.#open.get(name)
  }

  /** Calls `work` in the same turn of the event loop if the queue is open: a turn would delay every call. */
  use<T>(name: QueueName, work: (runtime: QueueRuntime) => Promise<T>): Promise<T> {
    const runtime = this.#closed === undefined ? this.#open.get(name) : undefined
    return runtime === undefined ? this.open(name).then(work) : work(runtime)
  }

  open(name: QueueName): Promise<QueueRuntime> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    const known = this.#all.get(name)
    if (known !== undefined) return known
    const opening: Promise<QueueRuntime> = this.#create(name).then(
      (runtime) => {
        // The queue was created or deleted in the meantime, so the row may be outdated: read it again.
        if (this.#all.get(name) !== opening) return this.open(name)
        if (this.#held.has(name)) runtime.hold(true)
        this.#open.set(name, runtime)
        return runtime
      },
      (error: unknown) => {
        if (this.#all.get(name) !== opening) return this.open(name)
        // The next call tries again.
        this.#all.delete(name)
        throw error
      },
    )
    this.#all.set(name, opening)
    return opening
  }

  /** The last lease calls of the open queues that had one. */
  listLeaseCalls(): readonly Readonly<{ queue: QueueName; at: Instant }>[] {
    return [...this.#open].flatMap(([queue, { lastLeaseCallAt: at }]) => (at === null ? [] : [{ queue, at }]))
  }

  /** The runtime of a queue if one is open or being opened, once it is open. */
  async find(name: QueueName): Promise<QueueRuntime | undefined> {
    return this.#all.get(name)?.catch(() => undefined)
  }

  /** After a change that is written: if the store cannot be read now, the runtime refreshes later. */
  async refresh(name: QueueName): Promise<void> {
    const runtime = await this.find(name)
    if (runtime !== undefined)
      await readWithin(this.#parts.batchMsMax, runtime.refresh()).catch(this.#parts.onError)
  }

  /** Finds items that other servers stored, for the queues in which leases wait. */
  async refreshWaiting(): Promise<void> {
    for (const runtime of this.#open.values()) if (runtime.hasWaitingLeases) await runtime.refresh()
  }

  /** Another server stored items in these queues, or changed them. */
  onAnnounced(names: readonly string[]): void {
    for (const name of names) {
      // Also runtimes that are being opened: they may have read the counts before.
      void this.find(name).then((runtime) => runtime?.onAnnounced().catch(this.#parts.onError))
    }
  }

  /** A queue with this name was created: calls that did not find it look again. */
  async onCreated(name: QueueName): Promise<void> {
    if (this.#open.has(name)) await this.refresh(name)
    else this.#all.delete(name)
  }

  /** The queue was deleted: requests that wait in it are rejected. */
  async onDeleted(name: QueueName): Promise<void> {
    const runtime = this.#open.get(name)
    this.#all.delete(name)
    this.#open.delete(name)
    await runtime?.close(new KnownError('QUEUE_SHUTTING_DOWN', `queue ${name} was deleted`))
  }

  hold(name: QueueName, isHeld: boolean): void {
    if (isHeld) this.#held.add(name)
    else this.#held.delete(name)
    this.#open.get(name)?.hold(isHeld)
  }

  /** Rejects new calls and waiting leases; resolves when the other calls are done. */
  async finish(error: KnownError): Promise<void> {
    this.#closed ??= error
    const closed = this.#closed
    // Also runtimes that are being opened: their first calls would otherwise wait forever.
    await Promise.all([...this.#all.keys()].map(async (name) => (await this.find(name))?.finish(closed)))
    this.#open.clear()
  }

  async #create(name: QueueName): Promise<QueueRuntime> {
    const { storage, batchMsMax } = this.#parts
    const [queue, counts] = await readWithin(
      batchMsMax,
      Promise.all([storage.getQueue(name), storage.readCounts({ queue: name })]),
    )
    if (queue === null) throw createQueueNotFoundError(name)
    const onGone = () => {
      if (this.#open.get(name) === runtime) void this.onDeleted(name).catch(this.#parts.onError)
    }
    const onRejected = (error: unknown) => {
      if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') onGone()
    }
    const available = counts.map(({ waiting }) => waiting)
    const runtime: QueueRuntime = new QueueRuntime(queue, available, { ...this.#parts, onGone, onRejected })
    return runtime
  }
}
