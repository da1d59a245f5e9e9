import { type Clock, later } from '../core/instant.ts'
import type { Queue } from '../core/queue.ts'
import { KnownError } from '../errors.ts'
import type { AuditEntry } from '../storage/contract/audit.ts'
import type { ImportResult, ItemToImport } from '../storage/contract/items.ts'
import type { Command, Storage } from '../storage/contract/storage.ts'
import { stepBytesMax } from '../storage/shared/byte-budget.ts'
import { checkCommand } from '../storage/shared/check-command.ts'
import { queueNotFound } from '../storage/shared/queue-checks.ts'
import { createAnnouncer } from './announcer.ts'
import { inTime } from './deadline.ts'
import { type Clockwork, createClockwork } from './due-scheduler.ts'
import type { Engine, Trace } from './engine.ts'
import { createEventEmitter } from './events.ts'
import { createLoop } from './loop.ts'
import { Room } from './queue-runtime.ts'
import { knownInTime } from './rejected-batch.ts'
import { createWriter, type Writer } from './writer.ts'

export type EngineOptions = Readonly<{
  clock: Clock
  random?: () => number
  /** Unprocessed requests per queue; above it they are refused with QUEUE_OVERLOADED. */
  requestsMax?: number
  /** So long the store may take for a batch, or for a read, before whoever waits for it is told. */
  batchMsMax?: number
  /** False: time passes only when `advance` is called. */
  isTicking?: boolean
  /** How long the store took for a write, by the kind of its main command. */
  onWrite?(command: Command['op'], seconds: number): void
  /** Background work failed and will be tried again. */
  onError?(error: unknown): void
}>

/** A clear or an import of many is written in steps: a long transaction would keep all others waiting. */
const stepItemsMax = 1_000
/** How often waiting leases look for what other servers put in, should a wake-up be lost. */
const refreshMs = 1_000

export function createEngine(storage: Storage, options: EngineOptions): Engine {
  const { clock, random = Math.random, requestsMax = 100, batchMsMax = 3_000, isTicking = true } = options
  const onError = options.onError ?? (() => {})
  const rooms = new Map<string, Promise<Room>>()
  const open = new Map<string, Room>()
  const held = new Set<string>()
  let closed: KnownError | undefined

  const read = <T>(reading: Promise<T>): Promise<T> => inTime(batchMsMax, reading)
  /** `follow`: what comes of it here, also when it is done so late that nobody waits any more. It never rejects. */
  const known = async <T>(
    writing: Promise<T>,
    advice: string,
    follow: (done: T) => Promise<void> = async () => {},
  ): Promise<T> => {
    const followed = writing.then(follow, () => {})
    const done = await knownInTime(batchMsMax, writing, advice, onError)
    await followed
    return done
  }
  /**
   * Before what may rightly take long, with millions of rows, and so is waited for to its end: a store that does not
   * answer at all is found out while nothing is begun yet.
   */
  const storeAnswers = async (name: string): Promise<void> => {
    await read(storage.getQueue(name))
  }

  const announcer = createAnnouncer(storage, onError)
  const stopHearing = storage.onAnnounced((queues) => {
    // Those that are being opened, too: they may have looked before.
    for (const name of queues) {
      void rooms.get(name)?.then(
        (room) => room.noticed().catch(onError),
        () => {},
      )
    }
  })

  const events = createEventEmitter(onError)
  const writer: Writer = createWriter({
    storage,
    onAvailable: (queue, partition, count) => {
      open.get(queue)?.gain(partition, count)
      announcer.add(queue)
    },
    onExpired: (queue) => void open.get(queue)?.refresh().catch(onError),
    onStored: () => clockwork.expect(clock.now()),
    onEvent: events.emit,
    ...(options.onWrite !== undefined && { onWrite: options.onWrite }),
    onError,
  })
  const clockwork: Clockwork = createClockwork({ storage, writer, clock, onError })

  const openRoom = async (name: string): Promise<Room> => {
    const [queue, counts] = await read(Promise.all([storage.getQueue(name), storage.counts({ queue: name })]))
    if (queue === null) throw queueNotFound(name)
    const available = counts.map(({ waiting }) => waiting)
    const parts = {
      storage,
      writer,
      clock,
      requestsMax,
      batchMsMax,
      onAvailable: announcer.add,
      onDue: (at: number) => clockwork.expect(at),
      onGone: () => leave(),
      onRefused: (error: unknown) => {
        if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') leave()
      },
      onError,
    }
    /** A queue that is gone from the store, by this or another server, has no room. */
    const leave = () => {
      if (open.get(name) === room) void leaveRoom(name).catch(onError)
    }
    const room: Room = new Room(queue, available, parts)
    return room
  }
  const roomOf = (name: string): Promise<Room> => {
    if (closed !== undefined) return Promise.reject(closed)
    const known = rooms.get(name)
    if (known !== undefined) return known
    // Made or deleted while it was being opened, a queue may not be what was read: then it is read again.
    const opening: Promise<Room> = openRoom(name).then(
      (room) => {
        if (rooms.get(name) !== opening) return roomOf(name)
        if (held.has(name)) room.hold(true)
        open.set(name, room)
        return room
      },
      (error: unknown) => {
        if (rooms.get(name) !== opening) return roomOf(name)
        // What could not be opened is tried anew by the next caller.
        rooms.delete(name)
        throw error
      },
    )
    rooms.set(name, opening)
    return opening
  }
  /** The change is written: a room that cannot look now looks later. */
  const refreshRoom = async (name: string): Promise<void> => {
    const room = await rooms.get(name)?.catch(() => undefined)
    if (room !== undefined) await read(room.refresh()).catch(onError)
  }
  /** However it was found that the queue is gone, who waits in its room is told the same. */
  const leaveRoom = async (name: string): Promise<void> => {
    const room = open.get(name)
    rooms.delete(name)
    open.delete(name)
    await room?.close(wasDeleted(name))
  }
  /** One that is open is not waited for: every turn that a call waits is paid by all calls. */
  const inRoom = <T>(name: string, work: (room: Room) => Promise<T>): Promise<T> => {
    const room = closed === undefined ? open.get(name) : undefined
    return room === undefined ? roomOf(name).then(work) : work(room)
  }

  const entry = (
    trace: Trace,
    action: string,
    target: string,
    details: AuditEntry['details'],
  ): AuditEntry => ({
    at: clock.now(),
    action,
    target,
    details,
    ...trace,
  })
  const audited = <C extends Command>(
    command: C,
    trace: Trace | undefined,
    action: string,
    details: AuditEntry['details'],
    target: string,
  ) =>
    trace === undefined
      ? ([command] as const)
      : ([command, { op: 'audit', entries: [entry(trace, action, target, details)] }] as const)

  /** For commands whose rows the store writes, with what they removed. */
  const actOf = (trace: Trace | undefined, action: string, details: AuditEntry['details']) =>
    trace === undefined ? {} : { trace: { at: clock.now(), action, details, ...trace } }

  /** What came of a call that took several transactions. That it was begun stands in its first one. */
  const auditEnd = async (
    trace: Trace | undefined,
    action: string,
    details: AuditEntry['details'],
    target: string,
  ): Promise<void> => {
    if (trace === undefined) return
    // All of it is done, and its beginning on record: no reason to fail the call.
    const end = writer.write([{ op: 'audit', entries: [entry(trace, action, target, details)] }])
    await read(end).catch(onError)
  }

  const refreshing = createLoop(
    refreshMs,
    async () => {
      for (const room of open.values()) if (room.hasLeasers) await room.refresh()
    },
    onError,
  )
  if (isTicking) {
    clockwork.start()
    refreshing.start()
  }

  return {
    createQueue: (queue, trace) => {
      const { name } = queue
      const command = { op: 'create-queue', queue, now: clock.now() } as const
      const create = async (): Promise<Queue> =>
        (await writer.write(audited(command, trace, 'queue.create', { queue }, name)))[0]
      const advice = `repeat it, and queue ${name} is there already if it was made`
      return known(create(), advice, async () => {
        // Who was looking for it before it was there looks again; a room of one that had its name is left.
        if (open.has(name)) await refreshRoom(name)
        else rooms.delete(name)
      })
    },
    updateQueue: (name, changes, trace) => {
      const command = { op: 'update-queue', name, changes, now: clock.now() } as const
      const update = async (): Promise<Queue> =>
        (await writer.write(audited(command, trace, 'queue.update', { changes }, name)))[0]
      // Done later than a change that is sent after it, it would undo that.
      const advice = `repeat it, but look at queue ${name} before you change it otherwise`
      return known(update(), advice, async (updated) => {
        // A queue that goes on may have something for who waits elsewhere.
        announcer.add(name)
        const room = await rooms.get(name)?.catch(() => undefined)
        if (room !== undefined) room.queue = updated
        // A lease that met the pause found nothing, and so believes that nothing is there.
        await refreshRoom(name)
      })
    },
    deleteQueue: async (name, trace, { isForced } = { isForced: false }) => {
      await storeAnswers(name)
      const act = actOf(trace, 'queue.delete', isForced ? { isForced } : {})
      await writer.write([{ op: 'delete-queue', name, isForced, ...act }])
      await leaveRoom(name)
      // Who waits for its items elsewhere need not wait on.
      announcer.add(name)
    },
    getQueue: (name) => read(storage.getQueue(name)),
    reload: async (name) => {
      const queue = await read(storage.getQueue(name))
      if (queue === null) {
        await leaveRoom(name)
        throw queueNotFound(name)
      }
      const room = await rooms.get(name)?.catch(() => undefined)
      if (room === undefined) return
      const { createdAt, partitions } = room.queue
      const isAnother = createdAt !== queue.createdAt || partitions !== queue.partitions
      // Who waits there waits for a queue that is gone, though one of its name is here again.
      if (isAnother) await leaveRoom(name)
      else await read(room.refresh())
    },
    listQueues: (query) => read(storage.listQueues(query)),

    produce: (queue, items, call = {}) => inRoom(queue, (room) => room.produce(items, call)),
    lease: (queue, options) =>
      inRoom(queue, (room) => {
        const known = room.whenKnown()
        if (known === undefined) return room.lease(options)
        // It may be another queue by now, of the same name.
        return read(known)
          .catch(onError)
          .then(() => roomOf(queue))
          .then((looked) => looked.lease(options))
      }),
    complete: (queue, partition, ids, call = {}) =>
      inRoom(queue, (room) =>
        room.complete({ op: 'complete', queue, partition, ids, now: clock.now() }, call),
      ),
    retry: (queue, partition, items, call = {}) =>
      inRoom(queue, async (room) => {
        const given = items.map((item) => ({ isDead: false, error: null, chance: random(), ...item }))
        for (const { availableAt } of given) if (availableAt != null) clockwork.expect(availableAt)
        const changes = await room.settle(
          { op: 'retry', queue, partition, items: given, now: clock.now() },
          call,
        )
        // When the policy chose a time, only the store knows it: look when the next thing is due.
        if (changes.some((change) => change.to === 'scheduled')) clockwork.expect(clock.now())
        return changes
      }),
    extend: (queue, partition, ids, leaseUs, call = {}) =>
      inRoom(queue, async (room) => {
        const now = clock.now()
        const deadline = later(now, leaseUs ?? room.queue.leaseUs)
        await room.settle({ op: 'extend', queue, partition, ids, deadline, now }, call)
        clockwork.expect(deadline)
        return deadline
      }),

    importItems: async (queue, partition, items, trace) => {
      const now = clock.now()
      const details = { partition, items: items.length }
      // All of them before any is stored: only the store's own trouble can end it in between.
      checkCommand({ op: 'import', queue, partition, items, now })
      const imported: ImportResult[] = []
      let steps = 0
      // Cut in between, the first of the items are stored; repeated, those with a source id are skipped.
      do {
        const step = nextStep(items, imported.length)
        steps++
        const command = { op: 'import', queue, partition, items: step, now } as const
        const begun = steps === 1 ? trace : undefined
        const store = async (): Promise<readonly ImportResult[]> =>
          (await writer.write(audited(command, begun, 'items.import', details, queue)))[0]
        const advice = `${imported.length} of ${items.length} items are stored, the next ${step.length} perhaps; repeated, \
those with a source id are skipped, and others are there twice`
        imported.push(...(await known(store(), advice)))
      } while (imported.length < items.length)
      if (steps > 1) {
        const stored = imported.filter(({ id }) => id !== null).length
        await auditEnd(trace, 'items.imported', { ...details, stored }, queue)
      }
      return imported
    },
    deleteItems: async (queue, partition, ids, trace) => {
      await storeAnswers(queue)
      const act = actOf(trace, 'items.delete', { partition })
      const [{ removed }] = await writer.write([{ op: 'delete', queue, partition, ids, ...act }])
      await refreshRoom(queue)
      return removed
    },
    clear: async (queue, what, trace) => {
      await storeAnswers(queue)
      let total = 0
      for (;;) {
        const act = actOf(trace, 'queue.clear', { ...what })
        const [{ removed, isMore }] = await writer.write([
          { op: 'clear', queue, ...what, countMax: stepItemsMax, ...act },
        ])
        total += removed
        if (!isMore) break
      }
      await refreshRoom(queue)
      return total
    },
    listItems: (query) => read(storage.listItems(query)),
    stats: async (name) => {
      const room = await roomOf(name)
      const partitions = await read(storage.counts({ queue: name }))
      if (partitions.length === 0) throw queueNotFound(name)
      const { produce, lease, complete, inFlight } = room.waiting
      return { produceWaiting: produce, leaseWaiting: lease, completeWaiting: complete, inFlight, partitions }
    },

    write: writer.write,
    onEvent: events.subscribe,

    hold: (queue, isHeld) => {
      if (isHeld) held.add(queue)
      else held.delete(queue)
      // One that is being opened will look.
      open.get(queue)?.hold(isHeld)
    },
    advance: () => clockwork.advance(),
    close: async () => {
      closed ??= new KnownError('SHUTTING_DOWN', 'the server is shutting down')
      // Those that are being opened, too: their first calls would otherwise wait in a room that nobody closes.
      const finished = [...rooms.values()].map(async (opening) => {
        const room = await opening.catch(() => undefined)
        await room?.finish(closed as KnownError)
      })
      stopHearing()
      await Promise.all([...finished, clockwork.stop(), refreshing.stop(), announcer.stop()])
      open.clear()
    },
  }
}

function nextStep(items: readonly ItemToImport[], from: number): readonly ItemToImport[] {
  let [until, bytes] = [from, 0]
  while (until < items.length && until - from < stepItemsMax && bytes < stepBytesMax) {
    bytes += items[until++]?.payload.byteLength ?? 0
  }
  return items.slice(from, until)
}

function wasDeleted(name: string): KnownError {
  return new KnownError('QUEUE_SHUTTING_DOWN', `queue ${name} was deleted`)
}
