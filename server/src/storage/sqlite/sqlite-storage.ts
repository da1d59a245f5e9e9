import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { fromDate, type Instant } from '../../core/instant.ts'
import { KnownError } from '../../errors.ts'
import type { Difference } from '../contract/difference.ts'
import type { HeldLock } from '../contract/locks.ts'
import type { Command, ResultsOf, Storage } from '../contract/storage.ts'
import type { StoreOptions } from '../open-storage.ts'
import { openFile } from './connection/database-file.ts'
import { reconcileCounts } from './counts/verify.ts'
import { isBackground } from './threads/background-throttle.ts'
import { decodeResult, encodeCommand } from './threads/capture-encoding.ts'
import { read } from './threads/read.ts'
import { Thread } from './threads/thread.ts'
import { decodeError, type EncodedOutcome, pack, type ReadCall } from './threads/thread-messages.ts'
import { changedLettersMax, WalState } from './threads/wal.ts'
import { type Write, Writer } from './write.ts'

type Target = Readonly<{ kind: 'sqlite'; path: string } | { kind: 'memory' }>

type Call = Readonly<{ unit: Write; resolve(results: unknown[]): void; reject(error: unknown): void }>

/** The few calls in which a file and a store in memory differ. */
type Backend = Readonly<{
  write(unit: Write): Promise<unknown[]>
  read(call: ReadCall): Promise<unknown>
  reconcile(lock: HeldLock | undefined): Promise<unknown>
  close(): Promise<void>
}>

export async function openSqlite(target: Target, options: StoreOptions = {}): Promise<Storage> {
  const backend = target.kind === 'memory' ? inMemory(options) : await inFile(target.path, options)
  const ask = <T>(call: ReadCall) => backend.read(call) as Promise<T>
  return {
    kind: 'sqlite',
    write: async <const C extends readonly Command[]>(commands: C) => {
      const unit = commands.map(encodeCommand)
      const results = await backend.write(unit)
      return unit.map((sent, index) => decodeResult(sent, results[index])) as ResultsOf<C>
    },
    getQueue: (name) => ask({ read: 'queue', name }),
    listQueues: (query) => ask({ read: 'queues', query }),
    counts: (query) => ask({ read: 'counts', query }),
    listItems: (query) => ask({ read: 'items', query }),
    listArchive: (query) => ask({ read: 'archive', query }),
    listAudit: (query) => ask({ read: 'audit', query }),
    getLetters: (letterIds, bytes = 'all') => ask({ read: 'letters-by-id', letterIds, bytes }),
    getArchivedLetters: (letterIds) => ask({ read: 'archived-letters-by-id', letterIds }),
    readPayloadSizes: (letterIds, place) => ask({ read: 'letter-weights', letterIds, place }),
    findLettersByUuid: (uuids) => ask({ read: 'letters-by-uuid', uuids }),
    listLetters: (query) => ask({ read: 'letters', query }),
    listArchivedLetters: (query) => ask({ read: 'archived-letters', query }),
    findArchivedLetters: (query) => ask({ read: 'found-archived', query }),
    countLetters: (query) => ask({ read: 'letter-counts', query }),
    countOpenSince: (since, queues) => ask({ read: 'open-since', since, queues }),
    listGroups: (query) => ask({ read: 'groups', query }),
    groupSlugs: (groupIds) => ask({ read: 'group-slugs', groupIds }),
    groupArrivals: (groupIds, since) => ask({ read: 'group-arrivals', groupIds, since }),
    listEdits: (letterId) => ask({ read: 'edits', letterId }),
    getCampaign: (id) => ask({ read: 'campaign', id }),
    listCampaigns: (query) => ask({ read: 'campaigns', query }),
    // Here a letter is read where it is written, and nothing is waited for in between.
    prefetchLetters: async () => {},
    listCampaignLetters: (query) => ask({ read: 'campaign-letters', query }),
    nextDueAt: () => ask({ read: 'next-due' }),
    verify: () => ask({ read: 'verify', isRepairableOnly: false }),
    reconcile: (lock) => backend.reconcile(lock) as ReturnType<Storage['reconcile']>,
    // A SQLite store has one server: there is nobody to tell.
    announce: async () => {},
    onAnnounced: () => () => {},
    ping: async () => {
      await ask({ read: 'queue', name: '' })
    },
    close: () => backend.close(),
  }
}

async function inFile(path: string, options: StoreOptions): Promise<Backend> {
  const synchronous = options.sqliteSynchronous ?? 'full'
  const data = { path: realPath(path), synchronous, log: WalState.share() } as const
  const writer = await Thread.start('writer-thread', data)
  const reader = await Thread.start('reader-thread', data).catch(async (error: unknown) => {
    await writer.close()
    throw error
  })
  // Only letters need it, and a server is up sooner without. Should it not start, the writer does its work.
  let checkpoints: Promise<Thread | undefined> | undefined
  const startCheckpoints = () => {
    checkpoints = Thread.start('checkpoint-thread', data).catch(() => undefined)
  }

  const send = async (calls: readonly Call[], stepsBack: boolean) => {
    try {
      const units = pack(calls.map(({ unit }) => unit))
      const request = { ask: 'write', writes: units, now: nowOf(options), isBackground: stepsBack } as const
      const outcomes = await writer.ask<readonly EncodedOutcome[]>(request)
      for (const [index, outcome] of outcomes.entries()) {
        if ('error' in outcome) calls[index]?.reject(decodeError(outcome.error))
        else calls[index]?.resolve(outcome.results)
      }
    } catch (error) {
      for (const call of calls) call.reject(error)
    }
  }

  /** Counts every row, so it has a thread of its own: other reads do not wait for it. */
  const verify = async (what: ReadCall): Promise<readonly Difference[]> => {
    const counter = await Thread.start('reader-thread', data)
    try {
      return await counter.ask({ ask: 'read', what })
    } finally {
      await counter.close()
    }
  }

  // Writes of one turn of the event loop travel as one message. Large ones do not wait for each other: the writer stores the
  // first while the next is made ready. Together they would be answered in one turn, and come together again ever after.
  let gathered: Call[] = []
  const sendGathered = async () => {
    const calls = gathered
    gathered = []
    if (calls.length > 0) await send(calls, false)
  }
  let sent: Promise<unknown> = Promise.resolve()
  let steppedBack: Promise<unknown> = Promise.resolve()
  return {
    write: (unit) =>
      new Promise((resolve, reject) => {
        const call = { unit, resolve, reject }
        if (checkpoints === undefined && unit.some((command) => changedLettersMax(command) > 0))
          startCheckpoints()
        if (isBackground(unit)) steppedBack = Promise.all([steppedBack, send([call], true)])
        else {
          const isFirst = gathered.push(call) === 1
          if (isLarge(unit)) sent = sendGathered()
          else if (isFirst) sent = Promise.resolve().then(sendGathered)
        }
      }),
    read: (what) => (what.read === 'verify' ? verify(what) : reader.ask({ ask: 'read', what })),
    reconcile: async (lock) => {
      // The reader counts first: the writer is kept from its work only when there is something to mend.
      const found = await verify({ read: 'verify', isRepairableOnly: true })
      const now = nowOf(options)
      if (found.length > 0) return writer.ask({ ask: 'reconcile', lock, now })
      await writer.ask({ ask: 'tidy', now })
      return found
    },
    close: async () => {
      // The thread works in the order of arrival: the last write sent is the last one done, but for those that step back.
      await Promise.all([sent, steppedBack])
      await Promise.all([reader.close(), checkpoints?.then((thread) => thread?.close())])
      await writer.close()
    },
  }
}

/** Nothing to wait for, so no thread: each write is its own transaction. */
function inMemory(options: StoreOptions): Backend {
  const database = openFile(':memory:', 'full')
  const writer = new Writer(database, options.random ?? Math.random, () => nowOf(options))
  let isClosed = false
  const whileOpen = async <T>(work: () => T): Promise<T> => {
    if (isClosed) throw new KnownError('STORE_UNAVAILABLE', 'the store is closed')
    return work()
  }
  return {
    write: (unit) =>
      whileOpen(() => {
        const [outcome] = writer.write([unit])
        if (outcome?.isOk) return outcome.results
        throw outcome?.error
      }),
    read: (call) => whileOpen(() => read(database, call)),
    reconcile: (lock) => whileOpen(() => reconcileCounts(database, lock, nowOf(options))),
    close: async () => {
      isClosed = true
      database.close()
    },
  }
}

/** Items from which on a unit is worth a message of its own. */
const largeItems = 100

function isLarge(unit: Write): boolean {
  return unit.some((command) => {
    if (command.op === 'import-letters') return command.count >= largeItems
    return (command.op === 'produce' || command.op === 'import') && command.items.length >= largeItems
  })
}

/** One file, one lock, whatever link it is opened by. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    // It is not there yet.
    return resolve(path)
  }
}

function nowOf(options: StoreOptions): Instant {
  return options.clock?.now() ?? fromDate(new Date())
}
