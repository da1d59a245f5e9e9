import { postponeRedrive } from '../../../core/dead-letters/letter.ts'
import type { ItemHead } from '../../../core/items/item.ts'
import type { PostponeRedrives, PostponeResult } from '../../contract/letters.ts'
import { exhaustEntries } from '../../shared/audit/audit-entries.ts'
import { insertAudit } from '../audit/audit.ts'
import { rewriteRow } from '../items/write-rows.ts'
import type { Transaction } from '../transaction.ts'
import { findToDecide } from './letter-rows.ts'

export function postponeRedrives(transaction: Transaction, command: PostponeRedrives): PostponeResult {
  const { until, now } = command
  const changed: ItemHead[] = []
  // Postpone each letter once: after that it may still be due.
  for (const letterId of new Set(command.letterIds)) {
    const found = findToDecide(transaction, letterId)
    if (found === undefined) continue
    const after = postponeRedrive(found.letter, found.queueRow.queue.redrive, until, now)
    if (after === undefined) continue
    rewriteRow(transaction, found.queueRow, found.letter, after)
    changed.push(after)
  }
  insertAudit(transaction.database, exhaustEntries(command.audit, changed))
  const exhausted = changed.filter(({ state }) => state === 'dead').length
  return { postponed: changed.length - exhausted, exhausted }
}
