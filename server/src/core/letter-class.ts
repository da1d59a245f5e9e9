/** Letters of this class leave only by what is done to each of them, or because somebody says so twice. */
export const guardedClass = 'financial'

export type EndedState = 'done' | 'dead' | 'discarded'

/** Which letters of a class leave for the archive by themselves. */
export function leavingStates(letterClass: string): readonly EndedState[] {
  return letterClass === guardedClass ? ['done', 'discarded'] : ['done', 'dead', 'discarded']
}
