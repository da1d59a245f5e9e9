import { type EndedState, listArchivedStates } from '../../../core/dead-letters/letter-class.ts'
import type { Queue } from '../../../core/items/queue.ts'
import type { Archive } from '../../contract/archive.ts'
import type { AuditEntry } from '../../contract/audit.ts'

/** The states that an archive command moves. `queue`: as it is in the transaction of the command. */
export function listStatesToArchive({ states = allEnded }: Archive, queue: Queue): readonly EndedState[] {
  return states === 'by-class' ? listArchivedStates(queue.letterClass) : [...new Set(states)]
}

const allEnded: readonly EndedState[] = ['done', 'dead', 'discarded']

/** Records the states if the class of the queue decided them: the caller does not know them. */
export function archiveDetails(
  command: Archive,
  states: readonly EndedState[],
  letters: number,
): AuditEntry['details'] {
  return { ...(command.states === 'by-class' && { states }), letters }
}
