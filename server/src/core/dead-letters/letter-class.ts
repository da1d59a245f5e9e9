/** Letters of this class are discarded only by id or by campaign, or with an explicit `force`. */
export const guardedClass = 'financial'

/** The states of open letters: nobody decided about them yet, or their redrive is in progress. */
export const openLetterStates = ['waiting', 'scheduled', 'leased', 'dead'] as const

/** The states of letters that may be archived. */
export type EndedState = 'done' | 'dead' | 'discarded'

/** The states in which letters of a class are archived automatically. */
export function listArchivedStates(letterClass: string): readonly EndedState[] {
  return letterClass === guardedClass ? ['done', 'discarded'] : ['done', 'dead', 'discarded']
}
