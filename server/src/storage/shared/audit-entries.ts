/** The audit rows of what was done to letters. Both stores make them here, from what really happened. */
import type { Item } from '../../core/item.ts'
import type { AuditContext, AuditEntry } from '../contract/audit.ts'
import type { EditedLetter, RedriveResult } from '../contract/letters.ts'

/** `why`: not done, and why; null: done. `details`: what only its own row says. */
export type LetterAct = Readonly<{
  letterId: string
  why: string | null
  details?: AuditEntry['details']
}>

/**
 * One row per letter that changed: its trail is found by its id, however many went with it. How many were refused
 * beside it, and why, is said in numbers, so that a row is small whatever was asked for.
 */
export function letterEntries(trace: AuditContext | undefined, acts: readonly LetterAct[]): AuditEntry[] {
  if (trace === undefined) return []
  const { details: asked, sum, ...row } = trace
  const done = acts.filter(({ why }) => why === null)
  if (done.length === 0) return []
  const counted = { letters: done.length, ...refusedOf(acts) }
  const entries = done.map(({ letterId, details }) => ({
    ...row,
    target: letterId,
    details: { ...asked, ...details, ...counted },
  }))
  return sum === undefined ? entries : [{ ...row, ...sum, details: { ...asked, ...counted } }, ...entries]
}

export function actOf(redriven: RedriveResult): LetterAct {
  const { letterId } = redriven
  if (!redriven.isStarted) return { letterId, why: redriven.why }
  const { queue, number, edit } = redriven
  return { letterId, why: null, details: { queue, number, ...(edit !== undefined && { edit }) } }
}

/** Of letters that a policy changed: those that are DEAD by it. When others go next is no act. */
export function exhaustEntries(trace: AuditContext | undefined, changed: readonly Item[]): AuditEntry[] {
  const dead = changed.filter(({ state }) => state === 'dead')
  const acts = dead.map(({ rootId, redrives }) => ({ letterId: rootId, why: null, details: { redrives } }))
  return letterEntries(trace, acts)
}

/** An edited version was kept. With a redrive it has a row of its own beside that of the redrive. */
export function editEntries(
  trace: AuditContext | undefined,
  letterId: string,
  number: number,
  { payload, key, headers }: EditedLetter,
): AuditEntry[] {
  if (trace === undefined) return []
  const { at, actor, reason, requestId } = trace
  const changed = Object.entries({ payload, key, headers }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  )
  const details = { number, changed }
  return [{ at, actor, action: 'letter.edit', target: letterId, reason, requestId, details }]
}

/** One row about a queue, with how many; none when there were none. */
export function queueEntries(
  trace: AuditContext | undefined,
  target: string,
  count: number,
  details: AuditEntry['details'],
): AuditEntry[] {
  if (trace === undefined || count === 0) return []
  const { sum: _, ...row } = trace
  return [{ ...row, target, details: { ...row.details, ...details } }]
}

/** What left a queue, and how many of it were letters: an act on a queue may erase what nobody looked at. */
export function removalDetails(
  removed: number,
  letters: Readonly<Record<string, number>>,
): AuditEntry['details'] {
  return { removed, ...(Object.keys(letters).length > 0 && { letters }) }
}

function refusedOf(acts: readonly LetterAct[]): Readonly<{ refused?: Readonly<Record<string, number>> }> {
  const refused: Record<string, number> = {}
  for (const { why } of acts) if (why !== null) refused[why] = (refused[why] ?? 0) + 1
  return Object.keys(refused).length === 0 ? {} : { refused }
}
