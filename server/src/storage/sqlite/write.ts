import type { Instant } from '../../core/instant.ts'
import { checkCommand } from '../check-command.ts'
import type { Command, Results } from '../storage.ts'
import { advance } from './advance.ts'
import { archive } from './archive.ts'
import { writeAudit } from './audit.ts'
import { freezeIds, freezeLetters, putCampaign, skipLetters } from './campaigns.ts'
import { Tally } from './counts.ts'
import type { Database } from './database.ts'
import { deleteQueue } from './delete-queue.ts'
import { GroupBook } from './groups.ts'
import { lease } from './lease.ts'
import { editLetter } from './letter-edits.ts'
import { discard, endRedrives, purgeArchive, restore } from './letters.ts'
import { acquireLock, fence, releaseLock, renewLock } from './locks.ts'
import { importItems, produce } from './produce.ts'
import { createQueue, QueueBook, updateQueue } from './queues.ts'
import { redrive } from './redrive.ts'
import { clear, deleteItems } from './remove.ts'
import { replanRedrives } from './replan.ts'
import { complete, extend, retry, unlease } from './settle.ts'
import type { Transaction } from './transaction.ts'

/** One call of `write`: its commands stand or fall together. */
export type Unit = readonly Command[]
export type Outcome = { isOk: true; results: Results[Command['op']][] } | { isOk: false; error: unknown }

/** They find letters by their counts. */
const looksAtCounts = new Set<Command['op']>(['freeze-letters', 'replan-redrives', 'clear', 'delete-queue'])

/**
 * The one writer. Units that arrive while the disk is busy share the next transaction, and so its
 * fsync; each has a savepoint of its own, so that one that is refused leaves no trace in it.
 */
export class Writer {
  readonly #database: Database
  readonly #book: QueueBook
  readonly #groups: GroupBook
  readonly #now: () => Instant

  constructor(database: Database, random: () => number, now: () => Instant) {
    this.#database = database
    this.#book = new QueueBook(database, random)
    this.#groups = new GroupBook(database)
    this.#now = now
  }

  write(units: readonly Unit[]): Outcome[] {
    const outcomes: Outcome[] = []
    try {
      this.#database.run('begin immediate')
      const tally = new Tally()
      for (const unit of units) outcomes.push(this.#tryUnit(unit, tally, units.length === 1))
      tally.write(this.#database)
      this.#database.run('commit')
      return outcomes
    } catch (error) {
      // A full disk ends the transaction with everything in it: no unit of it may be acknowledged.
      if (this.#database.isInTransaction) this.#database.exec('rollback')
      this.#forget()
      return units.map((_, index) => {
        const outcome = outcomes[index]
        return outcome?.isOk === false ? outcome : { isOk: false, error }
      })
    }
  }

  #tryUnit(unit: Unit, tally: Tally, isAlone: boolean): Outcome {
    const own = new Tally()
    // Those of earlier units too. Written before the savepoint, so that they stay.
    if (unit.some(({ op }) => looksAtCounts.has(op))) tally.flush(this.#database)
    if (!isAlone) this.#database.run('savepoint unit')
    try {
      const transaction: Transaction = {
        database: this.#database,
        book: this.#book,
        groups: this.#groups,
        tally: own,
        now: this.#now,
      }
      const results = unit.map((command) => {
        checkCommand(command)
        return obey(transaction, command)
      })
      if (!isAlone) this.#database.run('release unit')
      tally.take(own)
      return { isOk: true, results }
    } catch (error) {
      if (isAlone || !this.#database.isInTransaction) throw error
      this.#database.exec('rollback to unit; release unit')
      this.#forget()
      return { isOk: false, error }
    }
  }

  #forget(): void {
    this.#book.forget()
    this.#groups.forget()
  }
}

function obey(transaction: Transaction, command: Command): Results[Command['op']] {
  switch (command.op) {
    case 'create-queue':
      return createQueue(transaction.database, transaction.book, command)
    case 'update-queue':
      return updateQueue(transaction.database, transaction.book, command)
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
