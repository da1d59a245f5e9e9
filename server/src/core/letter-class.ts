/** Letters of this class are removed only one by one, or with an explicit `force`. */
export const guardedClass = 'financial'

/** The states of letters that may be archived. */
export type EndedState = 'done' | 'dead' | 'discarded'

/** The states in which letters of a class are archived automatically. */
export function archivedStates(letterClass: string): readonly EndedState[] {
  return letterClass === guardedClass ? ['done', 'discarded'] : ['done', 'dead', 'discarded']
}
