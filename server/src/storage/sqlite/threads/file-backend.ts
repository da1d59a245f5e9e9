/**
 * A store in a file. The writer thread owns the writing connection, the reader thread reads, and the
 * checkpoint thread copies the WAL into the file while many letters are written.
 */
import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Instant } from '../../../core/time/instant.ts'
import { KnownError } from '../../../errors.ts'
import type { Difference } from '../../contract/difference.ts'
import type { HeldLock } from '../../contract/locks.ts'
import type { Backend } from '../backend.ts'
import type { Write } from '../write.ts'
import { isBackground } from './background-throttle.ts'
import { Thread } from './thread.ts'
import { pack, type ReadCall, type ThreadData } from './thread-messages.ts'
import { countChangedLettersMax, WalState } from './wal.ts'

type FileOptions = Readonly<{
  synchronous: 'full' | 'normal'
  lockWaitMs: number
  mustExist: boolean
  onCreated: () => void
  now: () => Instant
}>

export class FileBackend implements Backend {
  readonly #data: ThreadData
  readonly #now: () => Instant
  readonly #writer: Thread
  readonly #reader: Thread
  #checkpointThread: Promise<Thread | undefined> | undefined
  #backgroundWrites: Promise<unknown> = Promise.resolve()
  /** A write failed for lack of space, and none has shown since that there is some. */
  #isFull = false

  static async open(path: string, options: FileOptions): Promise<FileBackend> {
    const { synchronous, lockWaitMs, now } = options
    const isNew = !hasContent(path)
    if (isNew && options.mustExist) throw new KnownError('STORE_MISSING', `there is no store at ${path}`)
    const data = { path: resolveLinks(path), synchronous, lockWaitMs, wal: WalState.allocate() }
    const writer = await Thread.start('writer-thread', data)
    const reader = await Thread.start('reader-thread', data).catch(async (error: unknown) => {
      await writer.close()
      throw error
    })
    if (isNew) options.onCreated()
    return new FileBackend(data, now, writer, reader)
  }

  private constructor(data: ThreadData, now: () => Instant, writer: Thread, reader: Thread) {
    this.#data = data
    this.#now = now
    this.#writer = writer
    this.#reader = reader
  }

  /** The writer thread commits all writes that wait for it together: see decision 19. */
  write(write: Write): Promise<unknown[]> {
    if (write.some((command) => countChangedLettersMax(command) > 0)) this.#startCheckpointThread()
    const isInBackground = isBackground(write)
    const written = this.#writer.ask<unknown[]>({
      ask: 'write',
      write: pack(write),
      now: this.#now(),
      isBackground: isInBackground,
    })
    written.catch((error: unknown) => {
      if (error instanceof KnownError && error.code === 'STORE_FULL') this.#isFull = true
    })
    if (isInBackground) this.#backgroundWrites = Promise.allSettled([this.#backgroundWrites, written])
    return written
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

  async checkSpace(): Promise<void> {
    if (!this.#isFull) return
    await this.#writer.ask({ ask: 'check-space' })
    this.#isFull = false
  }

  async close(): Promise<void> {
    // The writer closes after the writes that arrived before. Only background writes may wait longer.
    await this.#backgroundWrites
    await Promise.all([this.#reader.close(), this.#checkpointThread?.then((thread) => thread?.close())])
    await this.#writer.close()
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

/** An empty file is not a store yet. */
function hasContent(path: string): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats !== undefined && (stats.size > 0 || !stats.isFile())
  } catch {
    // The path cannot be used. Opening it reports why.
    return true
  }
}

/** A file has one lock, whatever link it is opened by. */
export function resolveLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    // The file does not exist yet.
    return resolve(path)
  }
}
