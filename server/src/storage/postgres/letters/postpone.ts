import { postponeRedrive } from '../../../core/dead-letters/letter.ts'
import type { PostponeRedrives, PostponeResult } from '../../contract/letters.ts'
import { exhaustEntries } from '../../shared/audit/audit-entries.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Transaction } from '../transaction.ts'
import { type ChangedLetter, lockLetters, writeLetters } from './letter-rows.ts'

export async function postponeRedrives(
  transaction: Transaction,
  command: PostponeRedrives,
): Promise<PostponeResult> {
  const { until, now } = command
  const changed: ChangedLetter[] = []
  for (const { queueRow, letter } of (await lockLetters(transaction, command.letterIds)).values()) {
    const after = postponeRedrive(letter, queueRow.queue.redrive, until, now)
    if (after !== undefined) changed.push({ queueRow, before: letter, after })
  }
  await writeLetters(transaction, changed)
  const after = changed.map((each) => each.after)
  await insertAudit(transaction.connection, exhaustEntries(command.audit, after))
  const exhausted = after.filter(({ state }) => state === 'dead').length
  return { postponed: changed.length - exhausted, exhausted }
}
