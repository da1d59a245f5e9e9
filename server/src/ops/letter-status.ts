import type { ListedState } from '../storage/contract/items.ts'

export const letterStatuses = ['PENDING', 'RETRYING', 'RESOLVED', 'DEAD', 'DISCARDED'] as const
export type LetterStatus = (typeof letterStatuses)[number]

const statusOfState: Readonly<Record<ListedState, LetterStatus>> = {
  waiting: 'PENDING',
  scheduled: 'PENDING',
  leased: 'RETRYING',
  done: 'RESOLVED',
  dead: 'DEAD',
  discarded: 'DISCARDED',
}

export function letterStatus(state: ListedState): LetterStatus {
  return statusOfState[state]
}

/** A letter that is waiting may be scheduled as well. */
export function statesOf(status: LetterStatus): readonly ListedState[] {
  return (Object.keys(statusOfState) as ListedState[]).filter((state) => statusOfState[state] === status)
}

export function isLetterStatus(text: string): text is LetterStatus {
  return (letterStatuses as readonly string[]).includes(text)
}
