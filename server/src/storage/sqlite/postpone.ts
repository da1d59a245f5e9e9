import { postponeRedrive } from '../../core/letter.ts'
import type { Postponed, PostponeRedrives } from '../letter-store.ts'
import { rewrite } from './items.ts'
import { findToSend } from './letter-end.ts'
import type { Transaction } from './transaction.ts'

export function postponeRedrives(transaction: Transaction, command: PostponeRedrives): Postponed {
  const { until, now } = command
  let postponed = 0
  for (const letterId of command.letterIds) {
    const found = findToSend(transaction, letterId)
    if (found === undefined) continue
    const after = postponeRedrive(found.letter, found.known.queue.redrive, until, now)
    if (after === undefined) continue
    rewrite(transaction, found.known, found.letter, after)
    postponed++
  }
  return { postponed }
}
