import { discardLetter } from '../../../core/dead-letters/letter.ts'
import { findDiscardRefusal } from '../../../core/dead-letters/letter-decisions.ts'
import type { DiscardLetters, DiscardResult } from '../../contract/letters.ts'
import { createLetterEntries } from '../../shared/audit/audit-entries.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Transaction } from '../transaction.ts'
import { type ChangedLetter, locateMissing, lockLetters, writeLetters } from './letter-rows.ts'

export async function discardLetters(
  transaction: Transaction,
  command: DiscardLetters,
): Promise<DiscardResult[]> {
  const { letters, reason, now } = command
  const ids = letters.map(({ letterId }) => letterId)
  const locked = await lockLetters(transaction, ids)
  const locate = await locateMissing(transaction, ids, locked)
  const changed: ChangedLetter[] = []
  const results = letters.map(({ letterId, campaign }): DiscardResult => {
    const found = locked.get(letterId)
    const refusal = found === undefined ? locate(letterId) : findDiscardRefusal(found.letter)
    if (found === undefined || refusal !== undefined) {
      transaction.campaigns.move(campaign, 'pending', 'skipped', refusal ?? 'missing', now)
      return { letterId, isDiscarded: false, refusal: refusal ?? 'missing' }
    }
    const after = discardLetter(found.letter, reason, now, campaign?.id)
    changed.push({ queueRow: found.queueRow, before: found.letter, after })
    locked.set(letterId, { queueRow: found.queueRow, letter: after })
    transaction.campaigns.move(campaign, 'pending', 'discarded', '', now)
    return { letterId, isDiscarded: true, refusal: null }
  })
  await writeLetters(transaction, changed)
  await insertAudit(transaction.connection, createLetterEntries(command.audit, results))
  return results
}
