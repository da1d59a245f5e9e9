/**
 * Ends the redrives of letters: their item completed, died again or was deleted, or a command reports the
 * outcome. The letter, and its state in the campaign that sent it, change in the transaction that ends the
 * redrive.
 */

import { endRedrive, isRedriving, type RedriveEnd } from '../../../core/dead-letters/letter.ts'
import type { ItemHead, LeasedHead } from '../../../core/items/item.ts'
import { createUnknownOutcome } from '../../../core/items/transitions.ts'
import type { EndRedriveResult, EndRedrives } from '../../contract/letters.ts'
import { endCampaignLetter } from '../campaigns/campaign-letters.ts'
import { rewriteRow } from '../items/write-rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { forgetLetterIds } from './letter-ids.ts'
import { findLetter } from './letter-rows.ts'

type RedrivenItem = Pick<ItemHead, 'letterId' | 'retryCount'>
type RedrivingLetter = Readonly<{ queueRow: QueueRow; letter: LeasedHead }>

export function endRedrives(transaction: Transaction, command: EndRedrives): EndRedriveResult[] {
  return command.ends.map(({ letterId, outcome, failure, number, target }) => {
    const found = findRedriving(transaction, letterId)
    const current = found?.letter.letter?.redrives[0]?.number
    if (found === undefined || (number !== undefined && number !== current)) return { letterId, state: null }
    const end = { outcome, failure, target, at: command.now }
    return { letterId, state: endLetter(transaction, found.queueRow, found.letter, end).state }
  })
}

/** The letter that waits for the outcome of this item; undefined: it waits for another item, or for none. */
export function findLetterOfItem(transaction: Transaction, item: RedrivenItem): RedrivingLetter | undefined {
  if (item.letterId === null) return undefined
  const found = findRedriving(transaction, item.letterId)
  return found?.letter.letter?.redrives[0]?.number === item.retryCount ? found : undefined
}

export function findRedriving(transaction: Transaction, letterId: string): RedrivingLetter | undefined {
  const found = findLetter(transaction, letterId)
  if (found?.letter.state !== 'leased' || !isRedriving(found.letter)) return undefined
  return { queueRow: found.queueRow, letter: found.letter }
}

export function endLetter(
  transaction: Transaction,
  queueRow: QueueRow,
  letter: LeasedHead,
  end: Omit<RedriveEnd, 'chance'>,
): ItemHead {
  const campaign = letter.letter?.redrives[0]?.campaign
  const chance = transaction.queueCache.random()
  const after = endRedrive(letter, { ...end, chance }, queueRow.queue.redrive)
  rewriteRow(transaction, queueRow, letter, after)
  if (campaign) endCampaignLetter(transaction, campaign, end.outcome, end.at)
  return after
}

/** The item was deleted, so it is unknown whether it was processed. */
export function endDeletedItem(transaction: Transaction, item: RedrivenItem): void {
  const found = findLetterOfItem(transaction, item)
  if (found === undefined) return
  const at = transaction.now()
  const failure = createUnknownOutcome(found.letter, at)
  endLetter(transaction, found.queueRow, found.letter, { outcome: 'unknown', failure, at })
}

/**
 * Deletes the edited versions and the other ids of a deleted letter, and ends it in the campaign that was
 * redriving it.
 */
export function endDeletedLetter(
  transaction: Transaction,
  letter: Pick<ItemHead, 'state' | 'letter' | 'rootId'>,
): void {
  transaction.database.run('delete from letter_edits where letter_id = ?', letter.rootId)
  forgetLetterIds(transaction.database, letter.rootId)
  const campaign = letter.letter?.redrives[0]?.campaign
  if (campaign && isRedriving(letter)) endCampaignLetter(transaction, campaign, 'unknown', transaction.now())
}
