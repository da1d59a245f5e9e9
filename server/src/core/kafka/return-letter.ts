/**
 * A redriven record that died again in Kafka returns to its letter. Its death can arrive late: after the
 * outcome of the redrive was already decided, or more than once.
 */

import { copyBase, isRedriving, redriveHolder } from '../dead-letters/letter.ts'
import type { ItemHead, LeasedHead, RedriveRecord } from '../items/item.ts'
import type { Instant } from '../time/instant.ts'

/**
 * - `end`: the redrive is in progress, and ends as failed.
 * - `reopen`: the redrive ended as resolved or unknown, and nothing happened to the letter since. The letter
 *   was not processed after all.
 * - `ignore`: the death is already recorded, or a person has decided about the letter in the meantime.
 */
export type ReturnDecision = 'end' | 'reopen' | 'ignore'

/** `number`: the ordinal of the redrive whose record died. */
export function decideReturn(letter: ItemHead, number: number): ReturnDecision {
  const [newest] = letter.letter?.redrives ?? []
  if (newest?.number !== number) return 'ignore'
  if (isRedriving(letter)) return 'end'
  const wasEnded = newest.outcome === 'resolved' || newest.outcome === 'unknown'
  const isUntouched = letter.state === 'done' || letter.state === 'waiting' || letter.state === 'dead'
  return wasEnded && isUntouched ? 'reopen' : 'ignore'
}

/**
 * The letter as it was during the redrive that ended too early, so that the redrive can end again, as failed.
 * A redrive that ended as unknown has already counted as one without success.
 */
export function undoRedriveEnd(letter: ItemHead, now: Instant): LeasedHead {
  const [newest, ...before] = letter.letter?.redrives ?? []
  if (newest === undefined || letter.letter === null)
    throw new Error(`letter ${letter.id} was never redriven`)
  const open: RedriveRecord = { ...newest, outcome: null, endedAt: null }
  return {
    ...copyBase(letter),
    retryCount: newest.outcome === 'unknown' ? letter.retryCount - 1 : letter.retryCount,
    letter: { ...letter.letter, redrives: [open, ...before] },
    state: 'leased',
    lease: { holder: redriveHolder, deadline: now },
  }
}
