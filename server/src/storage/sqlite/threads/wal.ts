/**
 * The log of a file (its WAL), and who brings into the file what is in it.
 *
 * What is committed is in the log, and on disk with it. A busy queue writes the same few pages again and again: the writer
 * brings them in by the way, a thousand at a time, and the log stays short. Letters by the thousand are on a page of
 * their own each. While they come and go a thread of its own does it (checkpoint-thread.ts), so that no commit waits for that;
 * the log grows at its end meanwhile, and begins anew only when all of it is in the file. So the writer brings in the
 * rest when the log has become long: little is left then.
 */
import type { Database } from '../connection/database.ts'
import type { WriterCommand } from './capture-encoding.ts'

/** Pages in the log from which on a commit brings them in. */
const pagesAtOnce = 1_000
/** The same while a thread does it. Readers look for each page in all of the log. */
export const walPagesMax = 16_384
/** Only should that thread be stuck. */
const pagesAtLast = 8 * walPagesMax
/** Letters that a commit changes from which on the thread does it, and for how long. */
const manyLetters = 32
const manyMs = 1_000

/** How many letters the command may change. */
export function changedLettersMax(command: WriterCommand): number {
  switch (command.op) {
    case 'import-letters':
      return command.count
    case 'redrive':
    case 'discard':
      return command.letters.length
    case 'restore':
    case 'postpone-redrives':
      return command.letterIds.length
    case 'end-redrives':
      return command.ends.length
    case 'freeze-letters':
    case 'archive':
    case 'purge-archive':
    case 'replan-redrives':
      return command.countMax
    default:
      return 0
  }
}

/** How the threads of a store know of the log: numbers in shared memory. */
export class WalState {
  readonly #numbers: Int32Array

  constructor(shared: SharedArrayBuffer) {
    this.#numbers = new Int32Array(shared)
  }

  static share(): SharedArrayBuffer {
    return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)
  }

  /** Of many letters each. */
  get commits(): number {
    return Atomics.load(this.#numbers, 0)
  }

  countCommit(): void {
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

/** The log as the writer sees to it. */
export class Checkpointer {
  readonly #database: Database
  readonly #log: WalState
  #manyUntil = 0
  #isByThread: boolean | undefined

  constructor(database: Database, log: WalState) {
    this.#database = database
    this.#log = log
    this.#setByThread(false)
  }

  /** To be told before a commit. `nowMs`: of any clock that does not go back. */
  beforeCommit(letters: number, nowMs: number): void {
    if (letters >= manyLetters) this.#manyUntil = nowMs + manyMs
    this.#setByThread(nowMs < this.#manyUntil)
  }

  /** When everybody was answered: nobody waits for it but the next commit. */
  checkpointIfLong(): void {
    if (!this.#isByThread) return
    this.#log.countCommit()
    if (this.#log.pages < walPagesMax) return
    try {
      checkpoint(this.#database, this.#log)
    } catch {
      // On a full disk it stays in the log, and is tried again.
    }
  }

  #setByThread(isByThread: boolean): void {
    if (isByThread === this.#isByThread) return
    this.#isByThread = isByThread
    this.#database.get(`pragma wal_autocheckpoint = ${isByThread ? pagesAtLast : pagesAtOnce}`)
  }
}

/** Brings into the file what is in the log, as far as no reader needs it there; whether that is all of it. */
export function checkpoint(database: Database, log: WalState): boolean {
  const row = database.get('pragma wal_checkpoint(passive)')
  // Somebody else is at it.
  if (row?.busy !== 0) return false
  const isWhole = row.log === row.checkpointed
  log.pages = isWhole ? 0 : (row.log as number)
  return isWhole
}
