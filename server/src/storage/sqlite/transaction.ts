import type { Instant } from '../../core/instant.ts'
import type { Database } from './connection/database.ts'
import type { Tally } from './counts/counts.ts'
import type { GroupCache } from './letters/groups.ts'
import type { KeyRuns } from './letters/key-runs.ts'
import type { QueueCache } from './queues/queue-cache.ts'

/** What a command works with: the connection, the queues, the groups of letters, and the counts it changes. */
export type Transaction = Readonly<{
  database: Database
  queueCache: QueueCache
  groups: GroupCache
  keyRuns: KeyRuns
  tally: Tally
  /** For commands that bring no time of their own. */
  now: () => Instant
}>
