import { restoreLetter } from '../../../core/dead-letters/letter.ts'
import { findRestoreRefusal } from '../../../core/dead-letters/letter-decisions.ts'
import { withBytes } from '../../../core/items/item.ts'
import type { RestoreLetters, RestoreResult } from '../../contract/letters.ts'
import { createLetterEntries } from '../../shared/audit/audit-entries.ts'
import { insertAudit } from '../audit/audit.ts'
import { readQueueId, toItem } from '../items/rows.ts'
import { insertItem, recordArrival, rewriteRow } from '../items/write-rows.ts'
import { type FoundLetter, findLetter } from '../letters/letter-rows.ts'
import type { Transaction } from '../transaction.ts'
import { archivedLetterSql, readArchiveRowid } from './read-archive.ts'

/** Archived items are deleted with their queue, so the queue of an archived letter exists. */
export function restoreLetters(transaction: Transaction, command: RestoreLetters): RestoreResult[] {
  const { database, queueCache, countChanges } = transaction
  const results = command.letterIds.map((letterId): RestoreResult => {
    const live = findLetter(transaction, letterId)
    if (live !== undefined) return restoreLive(transaction, live, command)
    const row = database.getArray(archivedLetterSql, letterId)
    if (row === undefined) return { letterId, isRestored: false, refusal: 'missing' }
    const queueRow = queueCache.getById(readQueueId(row))
    const archived = toItem(row, queueRow.queue.name)
    const refusal = findRestoreRefusal(archived, true, command.campaignId)
    if (refusal !== undefined) return { letterId, isRestored: false, refusal }
    const letter = restoreLetter(archived, command.now, queueRow.queue.redrive)
    if (insertItem(transaction, queueRow, withBytes(letter, archived)) === undefined) {
      return { letterId, isRestored: false, refusal: 'taken' }
    }
    database.run('delete from archive where rowid = ?', readArchiveRowid(row))
    countChanges.add(queueRow.id, letter.partition, 'archived', -1)
    return { letterId, isRestored: true, refusal: null }
  })
  insertAudit(database, createLetterEntries(command.audit, results))
  return results
}

/** Restores a letter that was discarded and not archived yet. */
function restoreLive(
  transaction: Transaction,
  { queueRow, letter }: FoundLetter,
  { now, campaignId }: RestoreLetters,
): RestoreResult {
  const letterId = letter.rootId
  const refusal = findRestoreRefusal(letter, false, campaignId)
  if (refusal !== undefined) return { letterId, isRestored: false, refusal }
  const restored = restoreLetter(letter, now, queueRow.queue.redrive)
  rewriteRow(transaction, queueRow, letter, restored)
  recordArrival(transaction, queueRow, restored)
  return { letterId, isRestored: true, refusal: null }
}
