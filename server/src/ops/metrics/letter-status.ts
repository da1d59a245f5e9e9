import type { ListedState } from '../../storage/contract/items.ts'

export const letterStatuses = ['PENDING', 'RETRYING', 'RESOLVED', 'DEAD', 'DISCARDED'] as const
export type LetterStatus = (typeof letterStatuses)[number]

const statusByState: Readonly<Record<ListedState, LetterStatus>> = {
  waiting: 'PENDING',
  scheduled: 'PENDING',
  leased: 'RETRYING',
  done: 'RESOLVED',
  dead: 'DEAD',
  discarded: 'DISCARDED',
}

export function toLetterStatus(state: ListedState): LetterStatus {
  return statusByState[state]
}

/** PENDING has two states: waiting and scheduled. */
export function toStates(status: LetterStatus): readonly ListedState[] {
  return (Object.keys(statusByState) as ListedState[]).filter((state) => statusByState[state] === status)
}

export function isLetterStatus(text: string): text is LetterStatus {
  return (letterStatuses as readonly string[]).includes(text)
}
