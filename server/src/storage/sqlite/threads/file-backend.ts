/**
 * A store in a file. The writer thread owns the writing connection, the reader thread reads, and the
 * checkpoint thread copies the WAL into the file while many letters are written.
 */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Instant } from '../../../core/instant.ts'
import type { Difference } from '../../contract/difference.ts'
import type { HeldLock } from '../../contract/locks.ts'
import type { Backend } from '../backend.ts'
import type { Write } from '../write.ts'
import { isBackground } from './background-throttle.ts'
import { Thread } from './thread.ts'
import { decodeError, type EncodedOutcome, pack, type ReadCall, type ThreadData } from './thread-messages.ts'
import { changedLettersMax, WalState } from './wal.ts'

type FileOptions = Readonly<{ synchronous: 'full' | 'normal'; now: () => Instant }>
type PendingWrite = Readonly<{
  write: Write
  resolve(results: unknown[]): void
  reject(error: unknown): void
}>

/** A write that stores at least this many items gets a message of its own. */
const largeItems = 100

export class FileBackend implements Backend {
  readonly #data: ThreadData
  readonly #now: () => Instant
  readonly #writer: Thread
  readonly #reader: Thread
  #checkpointThread: Promise<Thread | undefined> | undefined
  /** Writes of the current tick of the event loop. They travel as one message. */
  #collected: PendingWrite[] = []
  #sent: Promise<unknown> = Promise.resolve()
  #sentInBackground: Promise<unknown> = Promise.resolve()

  static async open(path: string, { synchronous, now }: FileOptions): Promise<FileBackend> {
    const data = { path: resolveLinks(path), synchronous, wal: WalState.allocate() }
    const writer = await Thread.start('writer-thread', data)
    const reader = await Thread.start('reader-thread', data).catch(async (error: unknown) => {
      await writer.close()
      throw error
    })
    return new FileBackend(data, now, writer, reader)
  }

  private constructor(data: ThreadData, now: () => Instant, writer: Thread, reader: Thread) {
    this.#data = data
    this.#now = now
    this.#writer = writer
    this.#reader = reader
  }

  write(write: Write): Promise<unknown[]> {
    if (write.some((command) => changedLettersMax(command) > 0)) this.#startCheckpointThread()
    return new Promise((resolve, reject) => {
      const pending = { write, resolve, reject }
      if (isBackground(write)) {
        this.#sentInBackground = Promise.all([this.#sentInBackground, this.#send([pending], true)])
        return
      }
      const isFirst = this.#collected.push(pending) === 1
      // A large write is sent immediately, so that the writer stores it while the next one is encoded. Large
      // writes in one message would be answered together, and their callers would then always write at the
      // same time.
      if (isLarge(write)) this.#sent = this.#sendCollected()
      else if (isFirst) this.#sent = Promise.resolve().then(() => this.#sendCollected())
    })
  }

  read(call: ReadCall): Promise<unknown> {
    return call.read === 'verify' ? this.#verify(call) : this.#reader.ask({ ask: 'read', what: call })
  }

  async reconcile(lock: HeldLock | undefined): Promise<unknown> {
    // A reader counts first: the writer is interrupted only if there is something to repair.
    const found = await this.#verify({ read: 'verify', isRepairableOnly: true })
    const now = this.#now()
    if (found.length > 0) return this.#writer.ask({ ask: 'reconcile', lock, now })
    await this.#writer.ask({ ask: 'trim', now })
    return found
  }

  async close(): Promise<void> {
    // The writer works in the order of arrival, so the last sent write is the last to finish, except for
    // background writes.
    await Promise.all([this.#sent, this.#sentInBackground])
    await Promise.all([this.#reader.close(), this.#checkpointThread?.then((thread) => thread?.close())])
    await this.#writer.close()
  }

  async #sendCollected(): Promise<void> {
    const writes = this.#collected
    this.#collected = []
    if (writes.length > 0) await this.#send(writes, false)
  }

  async #send(pending: readonly PendingWrite[], isBackground: boolean): Promise<void> {
    try {
      const writes = pack(pending.map(({ write }) => write))
      const outcomes = await this.#writer.ask<readonly EncodedOutcome[]>({
        ask: 'write',
        writes,
        now: this.#now(),
        isBackground,
      })
      for (const [index, outcome] of outcomes.entries()) {
        if ('error' in outcome) pending[index]?.reject(decodeError(outcome.error))
        else pending[index]?.resolve(outcome.results)
      }
    } catch (error) {
      for (const { reject } of pending) reject(error)
    }
  }

  /** Counts every row in a thread of its own, so that other reads do not wait. */
  async #verify(call: ReadCall): Promise<readonly Difference[]> {
    const thread = await Thread.start('reader-thread', this.#data)
    try {
      return await thread.ask({ ask: 'read', what: call })
    } finally {
      await thread.close()
    }
  }

  /**
   * Only letters need this thread, and a server starts faster without it. If the thread cannot start, the
   * writer does the checkpoints.
   */
  #startCheckpointThread(): void {
    this.#checkpointThread ??= Thread.start('checkpoint-thread', this.#data).catch(() => undefined)
  }
}

function isLarge(write: Write): boolean {
  return write.some((command) => {
    if (command.op === 'import-letters') return command.count >= largeItems
    return (command.op === 'produce' || command.op === 'import') && command.items.length >= largeItems
  })
}

/** A file has one lock, whatever link it is opened by. */
function resolveLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    // The file does not exist yet.
    return resolve(path)
  }
}
