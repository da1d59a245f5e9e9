/**
 * The thread that owns the writing connection. All writes that wait when it gets to them share one commit.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { KnownError } from '../../../errors.ts'
import { mayUseReserve } from '../../shared/may-use-reserve.ts'
import type { Database } from '../connection/database.ts'
import { type FileLock, lockFile, openFile } from '../connection/database-file.ts'
import { DiskSpace } from '../connection/disk-space.ts'
import { dropOldBuckets } from '../counts/time-bucket-retention.ts'
import { reconcileCounts } from '../counts/verify.ts'
import { type Write, type WriteOutcome, Writer } from '../write.ts'
import { BackgroundThrottle } from './background-throttle.ts'
import {
  encodeError,
  listMoved,
  type OpenReport,
  pack,
  type Reply,
  type Request,
  type ThreadData,
  unpack,
} from './thread-messages.ts'
import { Checkpointer, countChangedLettersMax, WalState } from './wal.ts'

type WriteRequest = Request & { ask: 'write' }

class WriterThread {
  readonly #port: MessagePort
  readonly #lock: FileLock
  readonly #database: Database
  readonly #space: DiskSpace
  readonly #checkpointer: Checkpointer
  readonly #writer: Writer
  readonly #background = new BackgroundThrottle<WriteRequest>()
  #backgroundTimer: NodeJS.Timeout | undefined
  /** The time of the server: this thread has no clock of its own. */
  #now = 0

  constructor(port: MessagePort, { path, synchronous, lockWaitMs, wal }: ThreadData) {
    this.#port = port
    this.#lock = lockFile(path, lockWaitMs)
    this.#database = openFile(path, synchronous)
    this.#space = new DiskSpace(path)
    this.#checkpointer = new Checkpointer(this.#database, new WalState(wal))
    this.#writer = new Writer(this.#database, Math.random, () => this.#now)
    port.on('message', (request: Request) => this.#handle(request))
  }

  /** Takes every message that has arrived: all foreground writes among them become one commit. */
  #handle(first: Request): void {
    const writes: WriteRequest[] = []
    const others: Request[] = []
    for (let request: Request | undefined = first; request !== undefined; ) {
      if (request.ask === 'write' && request.isBackground) this.#background.add(request)
      else if (request.ask === 'write') writes.push(request)
      else others.push(request)
      request = receiveMessageOnPort(this.#port)?.message as Request | undefined
    }
    if (writes.length > 0) {
      this.#commit(writes)
      this.#background.noteForegroundWrite(performance.now())
    }
    for (const request of others) this.#answer(request)
    this.#runBackground()
  }

  #commit(requests: readonly WriteRequest[]): void {
    const batch = requests.map(({ write }) => unpack(write))
    this.#now = Math.max(...requests.map(({ now }) => now))
    const letters = batch.flat().reduce((sum, command) => sum + countChangedLettersMax(command), 0)
    this.#checkpointer.beforeCommit(letters, performance.now())
    for (const [index, outcome] of this.#write(batch).entries()) {
      const { call } = requests[index] as WriteRequest
      this.#reply(
        outcome.isOk ? { call, value: pack(outcome.results) } : { call, error: encodeError(outcome.error) },
      )
    }
    this.#checkpointer.checkpointIfLong()
  }

  /** Writes the batch. On a full disk, only the writes that may use the reserved space. */
  #write(batch: readonly Write[]): WriteOutcome[] {
    this.#space.check(performance.now())
    if (!this.#space.isFull) {
      const outcomes = this.#writer.write(batch)
      if (!outcomes.some(isFull)) return outcomes
      this.#space.release()
      // The whole batch was rolled back, except writes that were refused for another reason.
      return this.#rewrite(batch, outcomes)
    }
    const refusal: WriteOutcome = { isOk: false, error: this.#space.createRefusal() }
    return this.#rewrite(
      batch,
      batch.map(() => refusal),
    )
  }

  /** Writes again what failed because of the full disk and may use the reserved space. */
  #rewrite(batch: readonly Write[], outcomes: readonly WriteOutcome[]): WriteOutcome[] {
    const indexes = batch.flatMap((write, index) =>
      isFull(outcomes[index]) && mayUseReserve(write) ? [index] : [],
    )
    if (indexes.length === 0) return [...outcomes]
    const again = this.#writer.write(indexes.map((index) => batch[index] as Write))
    return outcomes.map((outcome, index) => again[indexes.indexOf(index)] ?? outcome)
  }

  /** Commits one background write if it may start now, and sets a timer for the next one. */
  #runBackground(): void {
    clearTimeout(this.#backgroundTimer)
    const delayMs = this.#background.delayMs(performance.now())
    if (delayMs === undefined) return
    if (delayMs === 0) {
      const startedMs = performance.now()
      this.#commit([this.#background.take() as WriteRequest])
      const endedMs = performance.now()
      this.#background.noteBackgroundWrite(endedMs - startedMs, endedMs)
    }
    // With a delay of 0 too: messages that arrived during the commit come first.
    this.#backgroundTimer = setTimeout(() => this.#runBackground(), delayMs)
  }

  #answer(request: Request): void {
    if (request.ask === 'close') {
      this.#close()
      this.#reply({ call: request.call, value: pack(null) })
      this.#port.close()
      return
    }
    try {
      this.#reply({ call: request.call, value: pack(this.#maintain(request)) })
    } catch (error) {
      this.#reply({ call: request.call, error: encodeError(error) })
    }
  }

  #maintain(request: Request): unknown {
    switch (request.ask) {
      case 'check-space':
        this.#space.check(performance.now())
        if (this.#space.isFull) throw this.#space.createRefusal()
        return null
      case 'trim':
        dropOldBuckets(this.#database, request.now)
        return null
      case 'reconcile':
        return reconcileCounts(this.#database, request.lock, request.now)
      default:
        throw new Error(`the writer cannot ${request.ask}`)
    }
  }

  #close(): void {
    try {
      this.#database.exec('pragma wal_checkpoint(truncate)')
    } catch {
      // On a full disk the WAL stays beside the file, and is read when the file is opened again.
    }
    this.#database.close()
    this.#space.close()
    this.#lock.release()
  }

  #reply(reply: Reply): void {
    this.#port.postMessage(reply, listMoved(reply))
  }
}

function isFull(outcome: WriteOutcome | undefined): boolean {
  return outcome?.isOk === false && outcome.error instanceof KnownError && outcome.error.code === 'STORE_FULL'
}

const port = parentPort
if (port === null) throw new Error('the writer runs as a thread')
try {
  new WriterThread(port, workerData as ThreadData)
  port.postMessage({ isOpen: true } satisfies OpenReport)
} catch (error) {
  port.postMessage({ isOpen: false, error: encodeError(error) } satisfies OpenReport)
  port.close()
}
