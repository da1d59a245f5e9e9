import type { Instant } from '../../core/time/instant.ts'
import { type CommandResult, execute } from './commands.ts'
import type { Database } from './connection/database.ts'
import { CountChanges } from './counts/counts.ts'
import { GroupCache } from './letters/groups.ts'
import { KeyRuns } from './letters/key-runs.ts'
import { QueueCache } from './queues/queue-cache.ts'
import type { WriterCommand } from './threads/capture-encoding.ts'
import type { Transaction } from './transaction.ts'

/** The commands of one call of `Storage.write`: all of them take effect, or none. */
export type Write = readonly WriterCommand[]
export type WriteOutcome = { isOk: true; results: CommandResult[] } | { isOk: false; error: unknown }

/** These commands find letters by their counts, so the counts of earlier commands must be in the tables. */
const readsCounts = new Set<WriterCommand['op']>([
  'freeze-letters',
  'replan-redrives',
  'clear',
  'delete-queue',
  'set-group-lifecycle',
])

/**
 * The only writer of the database. Writes that arrive during a commit form a batch: they share the next
 * transaction and its fsync. If one of them is rejected, the batch is rolled back and run again with one
 * savepoint per write, so that a rejected write leaves no change. Savepoints from the start would copy every
 * page that a write changes, and few writes are rejected.
 */
export class Writer {
  readonly #database: Database
  readonly #queueCache: QueueCache
  readonly #groups: GroupCache
  readonly #keyRuns: KeyRuns
  readonly #now: () => Instant
  /**
   * The last batch had a rejected write. The next one then starts with savepoints: running twice would cost
   * more.
   */
  #hadRejection = false

  constructor(database: Database, random: () => number, now: () => Instant) {
    this.#database = database
    this.#queueCache = new QueueCache(database, random)
    this.#groups = new GroupCache(database)
    this.#keyRuns = new KeyRuns(database)
    this.#now = now
  }

  /** Commits a batch of writes in one transaction. The outcomes have the order of the writes. */
  write(batch: readonly Write[]): WriteOutcome[] {
    if (batch.length === 1 || !this.#hadRejection) {
      const attempt = this.#commitAll(batch)
      if (attempt.isOk) return attempt.outcomes
      if (batch.length === 1) return [{ isOk: false, error: attempt.error }]
    }
    return this.#commitEach(batch)
  }

  /** Commits all writes of the batch, or none of them. */
  #commitAll(
    batch: readonly Write[],
  ): { isOk: true; outcomes: WriteOutcome[] } | { isOk: false; error: unknown } {
    try {
      this.#database.run('begin immediate')
      const countChanges = new CountChanges()
      const outcomes = batch.map((write): WriteOutcome => {
        this.#flushCountsFor(write, countChanges)
        return { isOk: true, results: this.#execute(write, countChanges) }
      })
      countChanges.write(this.#database)
      this.#database.run('commit')
      return { isOk: true, outcomes }
    } catch (error) {
      this.#rollBack()
      return { isOk: false, error }
    }
  }

  /** Commits the writes that are not rejected. */
  #commitEach(batch: readonly Write[]): WriteOutcome[] {
    const outcomes: WriteOutcome[] = []
    try {
      this.#database.run('begin immediate')
      const countChanges = new CountChanges()
      for (const write of batch) outcomes.push(this.#executeInSavepoint(write, countChanges))
      countChanges.write(this.#database)
      this.#database.run('commit')
      this.#hadRejection = outcomes.some(({ isOk }) => !isOk)
      return outcomes
    } catch (error) {
      // A full disk ends the transaction with everything in it: no write of it may be acknowledged.
      this.#rollBack()
      return batch.map((_, index) => {
        const outcome = outcomes[index]
        return outcome?.isOk === false ? outcome : { isOk: false, error }
      })
    }
  }

  #executeInSavepoint(write: Write, countChanges: CountChanges): WriteOutcome {
    const own = new CountChanges()
    // Before the savepoint, so that the counts of earlier writes stay if this write is rejected.
    this.#flushCountsFor(write, countChanges)
    this.#database.run('savepoint one_write')
    try {
      const results = this.#execute(write, own)
      this.#database.run('release one_write')
      countChanges.merge(own)
      return { isOk: true, results }
    } catch (error) {
      if (!this.#database.isInTransaction) throw error
      this.#database.exec('rollback to one_write; release one_write')
      this.#invalidateCaches()
      return { isOk: false, error }
    }
  }

  #flushCountsFor(write: Write, countChanges: CountChanges): void {
    if (write.some(({ op }) => readsCounts.has(op))) countChanges.flush(this.#database)
  }

  #execute(write: Write, countChanges: CountChanges): CommandResult[] {
    const transaction: Transaction = {
      database: this.#database,
      queueCache: this.#queueCache,
      groups: this.#groups,
      keyRuns: this.#keyRuns,
      countChanges,
      now: this.#now,
    }
    return write.map((command) => execute(transaction, command))
  }

  #rollBack(): void {
    if (this.#database.isInTransaction) this.#database.exec('rollback')
    this.#invalidateCaches()
  }

  #invalidateCaches(): void {
    this.#queueCache.invalidate()
    this.#groups.invalidate()
  }
}
