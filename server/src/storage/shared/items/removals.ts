/** The result and the audit rows of a request that removes items, the same in both stores. */

import { isRedriving } from '../../../core/dead-letters/letter.ts'
import type { ItemId, LetterId } from '../../../core/ids/ids.ts'
import type { ItemHead, ListedState } from '../../../core/items/item.ts'
import { KnownError } from '../../../errors.ts'
import type { AuditContext, AuditEntry } from '../../contract/audit.ts'
import type { RemoveResult } from '../../contract/items.ts'
import { createLetterEntries, createQueueEntries, createRemovalDetails } from '../audit/audit-entries.ts'

/** `letters`: the removed letters by state. `kept`: letters that stay as they are. */
export type Removed = Readonly<{
  removed: number
  letters: Readonly<Record<string, number>>
  discarded: readonly Readonly<{ letterId: LetterId; state: ListedState }>[]
  kept: number
}>

export const nothingRemoved: Removed = { removed: 0, letters: {}, discarded: [], kept: 0 }

/** `next`: see `RemoveResult`. */
export function removeResult({ removed, discarded }: Removed, next: ItemId | null): RemoveResult {
  return { removed, discarded: discarded.length, next }
}

/** One row for the queue, and one for each discarded letter, so that its history can be found by its id. */
export function createRemovalEntries(
  audit: AuditContext | undefined,
  queue: string,
  done: Removed,
  details: AuditEntry['details'] = {},
): AuditEntry[] {
  if (audit === undefined) return []
  const { removed, letters, discarded, kept } = done
  const byState = countStates(discarded.map(({ state }) => state))
  const row = createQueueEntries(audit, queue, removed + discarded.length, {
    ...details,
    ...createRemovalDetails(removed, letters),
    ...(discarded.length > 0 && { discarded: byState }),
    ...(kept > 0 && { kept }),
  })
  const { sum: _, ...rest } = audit
  const act = { ...rest, action: 'letter.discard', details: { by: audit.action, queue } }
  const outcomes = discarded.map(({ letterId }) => ({ letterId, refusal: null }))
  return [...row, ...createLetterEntries(act, outcomes)]
}

/** The reason that a discarded letter shows: that of the person, or else the action. */
export function discardReason(audit: AuditContext | undefined): string {
  return audit === undefined ? '' : audit.reason || audit.action
}

/** The largest number of ids in an audit row. */
export const idsAuditedMax = 1_000

/** Refuses to remove a letter while its redrive is in progress: its outcome would be lost. */
export function checkNotRedriving(letter: ItemHead): void {
  if (!isRedriving(letter)) return
  throw new KnownError(
    'LETTER_NOT_DISCARDABLE',
    `letter ${letter.rootId} cannot be removed: its redrive is in progress`,
  )
}

function countStates(states: readonly ListedState[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1
  return counts
}
