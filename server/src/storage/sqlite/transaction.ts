import type { Instant } from '../../core/instant.ts'
import type { Tally } from './counts.ts'
import type { Database } from './database.ts'
import type { GroupBook } from './groups.ts'
import type { KeyRuns } from './key-runs.ts'
import type { QueueBook } from './queues.ts'

/** What a command works with: the connection, the queues, the groups of letters, and the counts it changes. */
export type Transaction = Readonly<{
  database: Database
  book: QueueBook
  groups: GroupBook
  keyRuns: KeyRuns
  tally: Tally
  /** For commands that bring no time of their own. */
  now: () => Instant
}>
