import { archivedStates, type EndedState } from '../../core/letter-class.ts'
import type { Queue } from '../../core/queue.ts'
import type { Archive } from '../contract/archive.ts'
import type { AuditEntry } from '../contract/audit.ts'

/** What an archive command may take. `queue`: as it is in the command's transaction. */
export function endedStatesOf({ states = allEnded }: Archive, queue: Queue): readonly EndedState[] {
  return states === 'by-class' ? archivedStates(queue.letterClass) : [...new Set(states)]
}

const allEnded: readonly EndedState[] = ['done', 'dead', 'discarded']

/** Whoever let the class decide does not know what it decided. */
export function archiveDetails(
  command: Archive,
  states: readonly EndedState[],
  letters: number,
): AuditEntry['details'] {
  return { ...(command.states === 'by-class' && { states }), letters }
}
