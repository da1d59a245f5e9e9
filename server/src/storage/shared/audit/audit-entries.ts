/** The audit rows of actions on letters. Both stores create them here, from the results of the action. */
import type { ItemHead } from '../../../core/items/item.ts'
import type { AuditContext, AuditEntry } from '../../contract/audit.ts'
import type { EditedLetter, RedriveResult } from '../../contract/letters.ts'

/**
 * The result for one letter. `refusal`: its code; null: done. `details`: for the row of this
 * letter only.
 */
export type LetterOutcome = Readonly<{
  letterId: string
  refusal: string | null
  details?: AuditEntry['details']
}>

/**
 * One row for each letter that changed, so that its history can be found by its id. Refusals of the same
 * command are recorded as numbers by reason, so that a row stays small.
 */
export function createLetterEntries(
  audit: AuditContext | undefined,
  outcomes: readonly LetterOutcome[],
): AuditEntry[] {
  if (audit === undefined) return []
  const { details: given, sum, ...row } = audit
  const done = outcomes.filter(({ refusal }) => refusal === null)
  if (done.length === 0) return []
  const counted = { letters: done.length, ...countRefusals(outcomes) }
  const entries = done.map(({ letterId, details }) => ({
    ...row,
    target: letterId,
    details: { ...given, ...details, ...counted },
  }))
  return sum === undefined ? entries : [{ ...row, ...sum, details: { ...given, ...counted } }, ...entries]
}

export function toOutcome(result: RedriveResult): LetterOutcome {
  const { letterId } = result
  if (!result.isStarted) return { letterId, refusal: result.refusal }
  const { queue, number, edit } = result
  return { letterId, refusal: null, details: { queue, number, ...(edit !== undefined && { edit }) } }
}

/** The rows of letters that became DEAD by a policy. A changed schedule of other letters has no audit row. */
export function exhaustEntries(audit: AuditContext | undefined, changed: readonly ItemHead[]): AuditEntry[] {
  const dead = changed.filter(({ state }) => state === 'dead')
  const outcomes = dead.map(({ rootId, retryCount }) => ({
    letterId: rootId,
    refusal: null,
    details: { retryCount },
  }))
  return createLetterEntries(audit, outcomes)
}

/** The row of a stored edited version. If it was stored by a redrive, the redrive has its own row. */
export function editEntries(
  audit: AuditContext | undefined,
  letterId: string,
  number: number,
  { payload, key, headers }: EditedLetter,
): AuditEntry[] {
  if (audit === undefined) return []
  const { sum: _, details: __, ...row } = audit
  const changed = Object.entries({ payload, key, headers }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  )
  const details = { number, changed }
  return [{ ...row, action: 'letter.edit', target: letterId, details }]
}

/** One row about a queue, or none if nothing changed. */
export function createQueueEntries(
  audit: AuditContext | undefined,
  target: string,
  count: number,
  details: AuditEntry['details'],
): AuditEntry[] {
  if (audit === undefined || count === 0) return []
  const { sum: _, ...row } = audit
  return [{ ...row, target, details: { ...row.details, ...details } }]
}

/** How many items left a queue, and how many of them were letters, by state. */
export function createRemovalDetails(
  removed: number,
  letters: Readonly<Record<string, number>>,
): AuditEntry['details'] {
  return { removed, ...(Object.keys(letters).length > 0 && { letters }) }
}

function countRefusals(
  outcomes: readonly LetterOutcome[],
): Readonly<{ refused?: Readonly<Record<string, number>> }> {
  const refused: Record<string, number> = {}
  for (const { refusal } of outcomes) if (refusal !== null) refused[refusal] = (refused[refusal] ?? 0) + 1
  return Object.keys(refused).length === 0 ? {} : { refused }
}
