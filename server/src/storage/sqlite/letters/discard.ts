import { discardLetter } from '../../../core/dead-letters/letter.ts'
import { findDiscardRefusal } from '../../../core/dead-letters/letter-decisions.ts'
import type { DiscardLetters, DiscardResult } from '../../contract/letters.ts'
import { createLetterEntries } from '../../shared/audit/audit-entries.ts'
import { insertAudit } from '../audit/audit.ts'
import { moveLetter } from '../campaigns/campaign-letters.ts'
import { rewriteRow } from '../items/write-rows.ts'
import type { Transaction } from '../transaction.ts'
import { findLetter, locateMissing } from './letter-rows.ts'

export function discardLetters(transaction: Transaction, command: DiscardLetters): DiscardResult[] {
  const { reason, now } = command
  const results = command.letters.map(({ letterId, campaign }): DiscardResult => {
    const found = findLetter(transaction, letterId)
    const refusal =
      found === undefined ? locateMissing(transaction, letterId) : findDiscardRefusal(found.letter)
    if (found === undefined || refusal !== undefined) {
      if (campaign) moveLetter(transaction, campaign, 'pending', 'skipped', refusal ?? 'missing', now)
      return { letterId, isDiscarded: false, refusal: refusal ?? 'missing' }
    }
    const after = discardLetter(found.letter, reason, now, campaign?.id)
    rewriteRow(transaction, found.queueRow, found.letter, after)
    if (campaign) moveLetter(transaction, campaign, 'pending', 'discarded', '', now)
    return { letterId, isDiscarded: true, refusal: null }
  })
  insertAudit(transaction.database, createLetterEntries(command.audit, results))
  return results
}
