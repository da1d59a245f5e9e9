import type { Instant } from '../../core/instant.ts'
import type { Command, Results } from '../contract/storage.ts'
import { checkCommand } from '../shared/check-command.ts'
import { archive } from './archive/archive.ts'
import { writeAudit } from './audit/audit.ts'
import { freezeIds, freezeLetters, putCampaign, skipLetters } from './campaigns/campaigns.ts'
import type { Database } from './connection/database.ts'
import { Tally } from './counts/counts.ts'
import { advance } from './items/advance.ts'
import { importItems } from './items/import.ts'
import { lease } from './items/lease.ts'
import { produce } from './items/produce.ts'
import { clear, deleteItems } from './items/remove.ts'
import { complete, extend, retry, unlease } from './items/settle.ts'
import { editLetter } from './letters/edits.ts'
import { GroupCache } from './letters/groups.ts'
import { importLetters } from './letters/import-letters.ts'
import { KeyRuns } from './letters/key-runs.ts'
import { discard, endRedrives, purgeArchive, restore } from './letters/letters.ts'
import { postponeRedrives } from './letters/postpone.ts'
import { redrive } from './letters/redrive.ts'
import { replanRedrives } from './letters/replan.ts'
import { acquireLock, fence, releaseLock, renewLock } from './locks/locks.ts'
import { deleteQueue } from './queues/delete-queue.ts'
import { QueueCache } from './queues/queue-cache.ts'
import { createQueue, updateQueue } from './queues/queues.ts'
import type { EncodedImportResults, WriterCommand } from './threads/capture-encoding.ts'
import type { Transaction } from './transaction.ts'

/** One call of `write`: its commands stand or fall together. */
export type Write = readonly WriterCommand[]
type Result = Results[Command['op']] | EncodedImportResults
export type WriteOutcome = { isOk: true; results: Result[] } | { isOk: false; error: unknown }

/** They find letters by their counts. */
const looksAtCounts = new Set<WriterCommand['op']>([
  'freeze-letters',
  'replan-redrives',
  'clear',
  'delete-queue',
])

/**
 * The one writer. Units that arrive while the disk is busy share the next transaction, and so its
 * fsync. One that is refused leaves no trace in it: the transaction is undone and run again with a savepoint for
 * each unit. Savepoints from the start would have every page copied that a unit touches, for the sake of few.
 */
export class Writer {
  readonly #database: Database
  readonly #queueCache: QueueCache
  readonly #groups: GroupCache
  readonly #keyRuns: KeyRuns
  readonly #now: () => Instant
  /** Where units are refused again and again, doing everything twice would cost more. */
  #hasRefused = false

  constructor(database: Database, random: () => number, now: () => Instant) {
    this.#database = database
    this.#queueCache = new QueueCache(database, random)
    this.#groups = new GroupCache(database)
    this.#keyRuns = new KeyRuns(database)
    this.#now = now
  }

  write(units: readonly Write[]): WriteOutcome[] {
    if (units.length === 1 || !this.#hasRefused) {
      const attempt = this.#together(units)
      if (attempt.isOk) return attempt.outcomes
      if (units.length === 1) return [{ isOk: false, error: attempt.error }]
    }
    return this.#apart(units)
  }

  /** All of them, or none and why not. */
  #together(
    units: readonly Write[],
  ): { isOk: true; outcomes: WriteOutcome[] } | { isOk: false; error: unknown } {
    try {
      this.#database.run('begin immediate')
      const tally = new Tally()
      const outcomes = units.map((unit): WriteOutcome => {
        if (unit.some(({ op }) => looksAtCounts.has(op))) tally.flush(this.#database)
        return { isOk: true, results: this.#obeyAll(unit, tally) }
      })
      tally.write(this.#database)
      this.#database.run('commit')
      return { isOk: true, outcomes }
    } catch (error) {
      this.#undo()
      return { isOk: false, error }
    }
  }

  #apart(units: readonly Write[]): WriteOutcome[] {
    const outcomes: WriteOutcome[] = []
    try {
      this.#database.run('begin immediate')
      const tally = new Tally()
      for (const unit of units) outcomes.push(this.#tryUnit(unit, tally))
      tally.write(this.#database)
      this.#database.run('commit')
      this.#hasRefused = outcomes.some(({ isOk }) => !isOk)
      return outcomes
    } catch (error) {
      // A full disk ends the transaction with everything in it: no unit of it may be acknowledged.
      this.#undo()
      return units.map((_, index) => {
        const outcome = outcomes[index]
        return outcome?.isOk === false ? outcome : { isOk: false, error }
      })
    }
  }

  #tryUnit(unit: Write, tally: Tally): WriteOutcome {
    const own = new Tally()
    // Those of earlier units too. Written before the savepoint, so that they stay.
    if (unit.some(({ op }) => looksAtCounts.has(op))) tally.flush(this.#database)
    this.#database.run('savepoint unit')
    try {
      const results = this.#obeyAll(unit, own)
      this.#database.run('release unit')
      tally.take(own)
      return { isOk: true, results }
    } catch (error) {
      if (!this.#database.isInTransaction) throw error
      this.#database.exec('rollback to unit; release unit')
      this.#forget()
      return { isOk: false, error }
    }
  }

  #obeyAll(unit: Write, tally: Tally): Result[] {
    const transaction: Transaction = {
      database: this.#database,
      queueCache: this.#queueCache,
      groups: this.#groups,
      keyRuns: this.#keyRuns,
      tally,
      now: this.#now,
    }
    return unit.map((command) => {
      // What is sent like this was checked before.
      if (command.op === 'import-letters') return importLetters(transaction, command)
      checkCommand(command)
      return execute(transaction, command)
    })
  }

  #undo(): void {
    if (this.#database.isInTransaction) this.#database.exec('rollback')
    this.#forget()
  }

  #forget(): void {
    this.#queueCache.invalidate()
    this.#groups.invalidate()
  }
}

function execute(transaction: Transaction, command: Command): Results[Command['op']] {
  switch (command.op) {
    case 'create-queue':
      return createQueue(transaction.database, transaction.queueCache, command)
    case 'update-queue':
      return updateQueue(transaction.database, transaction.queueCache, command)
    case 'delete-queue':
      return deleteQueue(transaction, command)
    case 'produce':
      return produce(transaction, command)
    case 'lease':
      return lease(transaction, command)
    case 'complete':
      return complete(transaction, command)
    case 'retry':
      return retry(transaction, command)
    case 'extend':
      return extend(transaction, command)
    case 'unlease':
      return unlease(transaction, command)
    case 'advance':
      return advance(transaction, command)
    case 'import':
      return importItems(transaction, command)
    case 'delete':
      return deleteItems(transaction, command)
    case 'clear':
      return clear(transaction, command)
    case 'archive':
      return archive(transaction, command)
    case 'audit':
      return writeAudit(transaction, command)
    case 'acquire-lock':
      return acquireLock(transaction, command)
    case 'renew-lock':
      return renewLock(transaction, command)
    case 'release-lock':
      return releaseLock(transaction, command)
    case 'fence':
      return fence(transaction.database, command)
    case 'redrive':
      return redrive(transaction, command)
    case 'end-redrives':
      return endRedrives(transaction, command)
    case 'discard':
      return discard(transaction, command)
    case 'restore':
      return restore(transaction, command)
    case 'edit-letter':
      return editLetter(transaction, command)
    case 'replan-redrives':
      return replanRedrives(transaction, command)
    case 'postpone-redrives':
      return postponeRedrives(transaction, command)
    case 'purge-archive':
      return purgeArchive(transaction, command)
    case 'put-campaign':
      return putCampaign(transaction, command)
    case 'freeze-letters':
      return freezeLetters(transaction, command)
    case 'freeze-ids':
      return freezeIds(transaction, command)
    case 'skip-letters':
      return skipLetters(transaction, command)
  }
}
