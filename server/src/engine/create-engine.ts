import type { QueueName } from '../core/ids/ids.ts'
import { addDuration, type Clock } from '../core/time/instant.ts'
import { addTraceHeaders } from '../core/trace/trace-headers.ts'
import type { Tracing } from '../core/trace/tracing.ts'
import { KnownError } from '../errors.ts'
import type { Command, Storage } from '../storage/contract/storage.ts'
import { createQueueNotFoundError } from '../storage/shared/items/queue-checks.ts'
import { type Announcer, createAnnouncer } from './announcer.ts'
import type { Engine } from './engine.ts'
import { createEmitter, type Emitter, type EventEmitter } from './events.ts'
import { createLeaseCallRecorder, type LeaseCallRecorder } from './leases/lease-call-recorder.ts'
import { createLoop } from './loop.ts'
import { createQueueAdmin } from './queues/queue-admin.ts'
import { QueueRuntimes } from './queues/queue-runtimes.ts'
import { createQuotas, type QuotaName, type Quotas, sumPayloads } from './quotas/quotas.ts'
import { createRedactedEngine, createScopedEngine } from './scoped-engine.ts'
import { readWithin } from './timing/deadline.ts'
import { createDueScheduler, type DueScheduler } from './timing/due-scheduler.ts'
import { LeasedTraces } from './tracing/leased-traces.ts'
import { type ItemCalls, traceItemCalls } from './tracing/trace-item-calls.ts'
import { createWriteObserver } from './tracing/trace-writes.ts'
import { createWriter, type Writer } from './writes/writer.ts'

export type EngineOptions = Readonly<{
  clock: Clock
  /** A clock that is never set, to notice that `clock` was set forward. */
  elapsedUs?: () => number
  random?: () => number
  /** Unprocessed requests per queue. Further requests are rejected with QUEUE_OVERLOADED. */
  requestsMax?: number
  /** How long callers wait for the store to write a batch, or to answer a read. */
  batchMsMax?: number
  /** False: time passes only when `advance` is called. */
  isTicking?: boolean
  /** Undefined: no spans are created. */
  tracing?: Tracing
  /** Called with the time that the store took for a write, and the kind of its main command. */
  onWrite?(command: Command['op'], seconds: number, commands: number): void
  /** Called when a call was refused because of the quota of its namespace. */
  onQuotaRefused?(quota: QuotaName, namespace: string): void
  /** Called when background work failed. It will be tried again. */
  onError?(error: unknown): void
}>

/** How often waiting leases look for items of other servers, in case a notification was lost. */
const refreshMs = 1_000

/** How often lease calls are recorded for other servers. */
const recordMs = 5_000

/** How often the server looks for deletions of queues that another one began and did not finish. */
const finishDeletionsMs = 5_000

type Parts = Readonly<{
  storage: Storage
  clock: Clock
  random: () => number
  batchMsMax: number
  onError(error: unknown): void
  announcer: Announcer
  events: EventEmitter
  writer: Writer
  scheduler: DueScheduler
  runtimes: QueueRuntimes
  leaseCalls: LeaseCallRecorder
  available: Emitter<QueueName>
  quotas: Quotas
  leased: LeasedTraces
}>

export function createEngine(storage: Storage, options: EngineOptions): Engine {
  const parts = createParts(storage, options)
  const { announcer, events, writer, scheduler, runtimes, leaseCalls, onError, available } = parts
  const stopListening = storage.onAnnounced((queues) => {
    runtimes.onAnnounced(queues)
    for (const queue of queues) available.emit(queue)
  })
  const refreshing = createLoop(refreshMs, () => runtimes.refreshWaiting(), onError)
  const recording = createLoop(recordMs, () => leaseCalls.pass(), onError)
  const deleting = createLoop(finishDeletionsMs, () => engine.finishQueueDeletions(), onError)
  if (options.isTicking ?? true) {
    scheduler.start()
    refreshing.start()
    recording.start()
    deleting.start()
  }
  const engine: Engine = {
    ...createQueueAdmin(parts),
    ...(options.tracing === undefined
      ? createItemCalls(parts)
      : traceItemCalls(createItemCalls(parts), options.tracing, parts.leased)),
    ...createReads(parts),
    write: writer.write,
    onEvent: events.subscribe,
    quotas: parts.quotas,
    onAvailable: available.subscribe,
    hold: (queue, isHeld) => runtimes.hold(queue, isHeld),
    advance: async () => {
      await scheduler.advance()
      await engine.finishQueueDeletions()
    },
    recordLeaseCalls: () => leaseCalls.pass(),
    close: async () => {
      const finished = runtimes.finish(new KnownError('SHUTTING_DOWN', 'the server is shutting down'))
      stopListening()
      const loops = [scheduler, refreshing, recording, deleting, announcer]
      await Promise.all([finished, ...loops.map((loop) => loop.stop())])
    },
    readableIn: (namespaces) => createRedactedEngine(engine, storage, namespaces),
    within: (namespaces) => {
      const peekQueue = (name: string) => runtimes.peek(name)?.queue
      return createScopedEngine({ engine, storage, peekQueue, namespaces })
    },
  }
  return engine
}

function createParts(storage: Storage, options: EngineOptions): Parts {
  const { clock, random = Math.random, requestsMax = 100, batchMsMax = 3_000 } = options
  const { elapsedUs, onWrite, tracing, onQuotaRefused = () => {}, onError = () => {} } = options
  const announcer = createAnnouncer(storage, onError)
  const events: EventEmitter = createEmitter(onError)
  const available: Emitter<QueueName> = createEmitter(onError)
  const leased = new LeasedTraces()
  // The writer, the scheduler and the runtimes call each other: the writer only once something was written.
  const writer = createWriter({
    storage,
    onAvailable: (queue, partition, count) => {
      runtimes.peek(queue)?.addAvailable(partition, count)
      announcer.add(queue)
      available.emit(queue)
    },
    onExpired: (queue) => void runtimes.peek(queue)?.refresh().catch(onError),
    onStored: () => scheduler.wakeBy(clock.now()),
    onEvent: events.emit,
    ...(onWrite !== undefined && { onWrite }),
    ...(tracing !== undefined && {
      onCommitted: createWriteObserver({ tracing, storage, leased, onError }),
    }),
    onError,
  })
  const scheduler: DueScheduler = createDueScheduler({
    storage,
    writer,
    clock,
    ...(elapsedUs !== undefined && { elapsedUs }),
    onError,
  })
  const runtimes: QueueRuntimes = new QueueRuntimes({
    storage,
    writer,
    clock,
    requestsMax,
    batchMsMax,
    onAvailable: announcer.add,
    onDue: (at) => scheduler.wakeBy(at),
    onError,
  })
  const leaseCalls = createLeaseCallRecorder({ writer, clock, listCalls: () => runtimes.listLeaseCalls() })
  const quotas = createQuotas({ storage, onRefused: onQuotaRefused, onError })
  const running = { announcer, available, events, writer, scheduler, runtimes, leaseCalls, leased, quotas }
  return { storage, clock, random, batchMsMax, onError, ...running }
}

function createItemCalls({
  clock,
  random,
  batchMsMax,
  onError,
  scheduler,
  runtimes,
  quotas,
}: Parts): ItemCalls {
  return {
    produce: (queue, items, call = {}) => {
      const traced = call.trace === undefined ? items : addTraceHeaders(items, call.trace)
      return runtimes.use(queue, (runtime) => {
        const { namespace } = runtime.queue
        const admitted = quotas.admit(namespace, items.length, () => sumPayloads(items))
        if (admitted === undefined) return runtime.produce(traced, call)
        return admitted.then((release) => runtime.produce(traced, call).finally(release))
      })
    },
    lease: (queue, options) =>
      runtimes.use(queue, (runtime) => {
        const current = runtime.waitUntilCurrent()
        if (current === undefined) return runtime.lease(options)
        return (
          readWithin(batchMsMax, current)
            .catch(onError)
            // Open it again: the refresh may have found that the queue was deleted and created again.
            .then(() => runtimes.open(queue))
            .then((refreshed) => refreshed.lease(options))
        )
      }),
    complete: (queue, partition, ids, call = {}) =>
      runtimes.use(queue, (runtime) =>
        runtime.complete({ op: 'complete', queue, partition, ids, now: clock.now() }, call),
      ),
    retry: (queue, partition, items, call = {}) =>
      runtimes.use(queue, async (runtime) => {
        const requests = items.map((item) => ({ isDead: false, error: null, chance: random(), ...item }))
        for (const { availableAt } of requests) if (availableAt != null) scheduler.wakeBy(availableAt)
        const command = { op: 'retry', queue, partition, items: requests, now: clock.now() } as const
        const changes = await runtime.settle(command, call)
        // If the retry policy chose the time, only the store knows it: let the scheduler read what is due
        // next.
        if (changes.some((change) => change.to === 'scheduled')) scheduler.wakeBy(clock.now())
        return changes
      }),
    extend: (queue, partition, ids, leaseTimeoutUs, call = {}) =>
      runtimes.use(queue, async (runtime) => {
        const now = clock.now()
        const deadline = addDuration(now, leaseTimeoutUs ?? runtime.queue.leaseTimeoutUs)
        await runtime.settle({ op: 'extend', queue, partition, ids, deadline, now }, call)
        scheduler.wakeBy(deadline)
        return deadline
      }),
  }
}

type Reads = Pick<Engine, 'getQueue' | 'listQueues' | 'listItems' | 'readStats' | 'readLastLeaseCallAt'>

function createReads({ storage, batchMsMax, runtimes }: Parts): Reads {
  const read = <T>(reading: Promise<T>): Promise<T> => readWithin(batchMsMax, reading)
  return {
    getQueue: (name) => read(storage.getQueue(name)),
    listQueues: (query) => read(storage.listQueues(query)),
    listItems: (query) => read(storage.listItems(query)),
    readLastLeaseCallAt: async (name) => {
      const here = runtimes.peek(name)?.lastLeaseCallAt ?? null
      const recorded = await read(storage.readLeaseCall(name))
      return here === null || recorded === null ? (here ?? recorded) : Math.max(here, recorded)
    },
    readStats: async (name) => {
      const runtime = await runtimes.open(name)
      const partitions = await read(storage.readCounts({ queue: name }))
      if (partitions.length === 0) throw createQueueNotFoundError(name)
      const { produce, lease, complete, inFlight } = runtime.waiting
      return { produceWaiting: produce, leaseWaiting: lease, completeWaiting: complete, inFlight, partitions }
    },
  }
}
