import type { Item } from '../../core/item.ts'
import { postponeRedrive } from '../../core/letter.ts'
import { exhaustEntries } from '../act-trace.ts'
import type { Postponed, PostponeRedrives } from '../letter-store.ts'
import { insertAudit } from './audit.ts'
import { rewrite } from './items.ts'
import { findToSend } from './letter-end.ts'
import type { Transaction } from './transaction.ts'

export function postponeRedrives(transaction: Transaction, command: PostponeRedrives): Postponed {
  const { until, now } = command
  const changed: Item[] = []
  // Each once, though it may still be due then.
  for (const letterId of new Set(command.letterIds)) {
    const found = findToSend(transaction, letterId)
    if (found === undefined) continue
    const after = postponeRedrive(found.letter, found.known.queue.redrive, until, now)
    if (after === undefined) continue
    rewrite(transaction, found.known, found.letter, after)
    changed.push(after)
  }
  insertAudit(transaction.database, exhaustEntries(command.trace, changed))
  const exhausted = changed.filter(({ state }) => state === 'dead').length
  return { postponed: changed.length - exhausted, exhausted }
}
