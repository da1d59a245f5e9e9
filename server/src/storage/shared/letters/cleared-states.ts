import type { Clear, ListedState } from '../../contract/items.ts'

/** The states of the items that a `clear` deletes. */
export function listClearedStates({ isWaiting, isScheduled, isLeased }: Clear): ListedState[] {
  const states: ListedState[] = []
  if (isWaiting) states.push('waiting')
  if (isScheduled) states.push('scheduled')
  if (isLeased) states.push('leased')
  return states
}
