/**
 * Cancels redrives: removes their items from the target queues, and makes the letters as they were before.
 */

import { cancelRedrive } from '../../../core/dead-letters/letter.ts'
import {
  type CancelRefusal,
  findCancelRefusal,
  locateRedrivenItem,
} from '../../../core/dead-letters/letter-decisions.ts'
import type { ItemHead, LeasedHead } from '../../../core/items/item.ts'
import type { CancelRedriveResult, CancelRedrives } from '../../contract/letters.ts'
import { createLetterEntries } from '../../shared/audit/audit-entries.ts'
import { insertAudit } from '../audit/audit.ts'
import { moveLetter } from '../campaigns/campaign-letters.ts'
import { headColumnList, toItemHead } from '../items/rows.ts'
import { deleteRow, rewriteRow } from '../items/write-rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { findLetter, locateMissing } from './letter-rows.ts'

export function cancelRedrives(transaction: Transaction, command: CancelRedrives): CancelRedriveResult[] {
  const results = command.letterIds.map((letterId) => cancel(transaction, command, letterId))
  insertAudit(transaction.database, createLetterEntries(command.audit, results))
  return results
}

function cancel(transaction: Transaction, { now }: CancelRedrives, letterId: string): CancelRedriveResult {
  const refuse = (refusal: CancelRefusal): CancelRedriveResult => {
    return { letterId, isCancelled: false, refusal, target: null }
  }
  const found = findLetter(transaction, letterId)
  if (found === undefined) return refuse(locateMissing(transaction, letterId))
  const { queueRow, letter } = found
  const sent = findItem(transaction, letter)
  const refusal = findCancelRefusal(letter, sent?.item)
  if (refusal !== undefined || sent === undefined) return refuse(refusal ?? 'leased')
  deleteRow(transaction, sent.queueRow, sent.item)
  transaction.countChanges.add(sent.queueRow.id, sent.item.partition, 'deleted')
  const campaign = letter.letter?.redrives[0]?.campaign
  // A letter that is being redriven is leased.
  rewriteRow(transaction, queueRow, letter, cancelRedrive(letter as LeasedHead, now, queueRow.queue.redrive))
  if (campaign) moveLetter(transaction, campaign, 'sent', 'skipped', 'redrive-cancelled', now)
  return { letterId, isCancelled: true, refusal: null, target: sent.queueRow.queue.name }
}

const findItemSql = `select ${headColumnList} from items where queue_id = ? and partition = ? and id = ?`

function findItem(
  { database, queueCache }: Transaction,
  letter: ItemHead,
): Readonly<{ queueRow: QueueRow; item: ItemHead }> | undefined {
  const location = locateRedrivenItem(letter)
  const queueRow = location && queueCache.find(location.queue)
  if (location === undefined || queueRow === undefined) return undefined
  const row = database.getArray(findItemSql, queueRow.id, location.partition, location.id)
  return row && { queueRow, item: toItemHead(row, queueRow.queue.name) }
}
