import type { Instant } from '../../core/time/instant.ts'
import { KnownError } from '../../errors.ts'
import type { HeldLock } from '../contract/locks.ts'
import type { Backend } from './backend.ts'
import type { Database } from './connection/database.ts'
import { openFile } from './connection/database-file.ts'
import { reconcileCounts } from './counts/verify.ts'
import { read } from './threads/read.ts'
import type { ReadCall } from './threads/thread-messages.ts'
import { type Write, Writer } from './write.ts'

/**
 * A store in memory. No call waits for a disk, so there are no threads: each write is a transaction of its
 * own.
 */
export class MemoryBackend implements Backend {
  readonly #database: Database
  readonly #writer: Writer
  readonly #now: () => Instant
  #isClosed = false

  constructor(random: () => number, now: () => Instant) {
    this.#database = openFile(':memory:', 'full')
    this.#writer = new Writer(this.#database, random, now)
    this.#now = now
  }

  async write(write: Write): Promise<unknown[]> {
    this.#checkOpen()
    const [outcome] = this.#writer.write([write])
    if (outcome?.isOk) return outcome.results
    throw outcome?.error
  }

  async read(call: ReadCall): Promise<unknown> {
    this.#checkOpen()
    return read(this.#database, call)
  }

  async reconcile(lock: HeldLock | undefined): Promise<unknown> {
    this.#checkOpen()
    return reconcileCounts(this.#database, lock, this.#now())
  }

  async checkSpace(): Promise<void> {}

  async close(): Promise<void> {
    this.#isClosed = true
    this.#database.close()
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new KnownError('STORE_UNAVAILABLE', 'the store is closed')
  }
}
