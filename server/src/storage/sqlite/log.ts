/**
 * The log of a file (its WAL), and who keeps it short.
 *
 * What is committed is in the log, and on disk with it. A thread of its own brings it from there into the file
 * (checkpoint-thread.ts), so that no commit waits for that. While it does, the log grows at its end; it begins anew only
 * when all of it is in the file. So the writer brings in the rest itself when the log has become long: little is left then.
 */
import type { Database } from './database.ts'

/** Pages in the log from which on the writer sees to it. Readers look for each page in all of it. */
export const logPagesMax = 16_384

/** How the threads of a store know of the log: numbers in shared memory. */
export class Log {
  readonly #numbers: Int32Array

  constructor(shared: SharedArrayBuffer) {
    this.#numbers = new Int32Array(shared)
  }

  static share(): SharedArrayBuffer {
    return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)
  }

  /** Changes with every commit. */
  get commits(): number {
    return Atomics.load(this.#numbers, 0)
  }

  noteCommit(): void {
    Atomics.add(this.#numbers, 0, 1)
  }

  /** When somebody last looked. */
  get pages(): number {
    return Atomics.load(this.#numbers, 1)
  }

  set pages(pages: number) {
    Atomics.store(this.#numbers, 1, pages)
  }
}

/** Brings into the file what is in the log, as far as no reader needs it there; whether that is all of it. */
export function bringIn(database: Database, log: Log): boolean {
  const row = database.get('pragma wal_checkpoint(passive)')
  // Somebody else is at it.
  if (row?.busy !== 0) return false
  const isWhole = row.log === row.checkpointed
  log.pages = isWhole ? 0 : (row.log as number)
  return isWhole
}
