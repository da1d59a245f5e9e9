/**
 * The write-ahead log (WAL) of a database file, and when it is copied into the file (a checkpoint).
 *
 * A commit is durable once it is in the WAL. A busy queue writes the same few pages again and again: the
 * writer checkpoints after a commit, every 1,000 pages, and the WAL stays short. Thousands of letters change
 * a page of their own each. While they are written, a separate thread checkpoints (checkpoint-thread.ts), so
 * that no commit waits for it. The WAL grows in the meantime, because it restarts only when all of it is in
 * the file. When the WAL is long, the writer checkpoints the rest, which is little by then.
 */
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { WriterCommand } from './capture-encoding.ts'

/** A commit checkpoints when the WAL has this many pages. */
const autoCheckpointPages = 1_000
/**
 * The same while the checkpoint thread works. Readers search the whole WAL for every page, so it must not
 * grow further.
 */
export const walPagesMax = 16_384
/** The limit if the checkpoint thread is stuck. */
const stuckCheckpointPages = 8 * walPagesMax
/** A commit that changes this many letters hands the checkpoints to the thread, for this time. */
const manyLetters = 32
const threadMs = 1_000

/** An upper bound for the number of letters that the command changes. */
export function countChangedLettersMax(command: WriterCommand): number {
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

/** Numbers about the WAL in memory that the threads of a store share. */
export class WalState {
  readonly #numbers: Int32Array

  constructor(shared: SharedArrayBuffer) {
    this.#numbers = new Int32Array(shared)
  }

  static allocate(): SharedArrayBuffer {
    return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)
  }

  /** How many commits left their checkpoint to the thread. */
  get commits(): number {
    return Atomics.load(this.#numbers, 0)
  }

  countCommit(): void {
    Atomics.add(this.#numbers, 0, 1)
  }

  /** The length of the WAL at the last checkpoint. */
  get pages(): number {
    return Atomics.load(this.#numbers, 1)
  }

  set pages(pages: number) {
    Atomics.store(this.#numbers, 1, pages)
  }
}

/** The writer's part in the checkpoints. */
export class Checkpointer {
  readonly #database: Database
  readonly #wal: WalState
  #byThreadUntilMs = 0
  #isByThread: boolean | undefined

  constructor(database: Database, wal: WalState) {
    this.#database = database
    this.#wal = wal
    this.#setByThread(false)
  }

  /** Call it before a commit that changes up to `letters` letters. `nowMs`: of a monotonic clock. */
  beforeCommit(letters: number, nowMs: number): void {
    if (letters >= manyLetters) this.#byThreadUntilMs = nowMs + threadMs
    this.#setByThread(nowMs < this.#byThreadUntilMs)
  }

  /** Call it after the answers to a commit are sent: only the next commit waits for this. */
  checkpointIfLong(): void {
    if (!this.#isByThread) return
    this.#wal.countCommit()
    if (this.#wal.pages < walPagesMax) return
    try {
      checkpoint(this.#database, this.#wal)
    } catch {
      // On a full disk the pages stay in the WAL, and the next commit tries again.
    }
  }

  #setByThread(isByThread: boolean): void {
    if (isByThread === this.#isByThread) return
    this.#isByThread = isByThread
    this.#database.get(
      `pragma wal_autocheckpoint = ${isByThread ? stuckCheckpointPages : autoCheckpointPages}`,
    )
  }
}

/**
 * Copies the WAL into the file, except pages that a reader still needs in the WAL. Returns whether all are
 * copied.
 */
export function checkpoint(database: Database, wal: WalState): boolean {
  const row = database.get('pragma wal_checkpoint(passive)') ?? {}
  const isBusy = row.busy !== 0
  if (isBusy) return false
  const isComplete = row.log === row.checkpointed
  wal.pages = isComplete ? 0 : readNumber(row, 'log')
  return isComplete
}
