import type { Instant } from '../../core/time/instant.ts'
import type { Database } from './connection/database.ts'
import type { CountChanges } from './counts/counts.ts'
import type { GroupCache } from './letters/groups.ts'
import type { KeyRuns } from './letters/key-runs.ts'
import type { QueueCache } from './queues/queue-cache.ts'

/**
 * Everything that a command needs: the connection, the caches of the writer, and the counts that it changes.
 */
export type Transaction = Readonly<{
  database: Database
  queueCache: QueueCache
  groups: GroupCache
  keyRuns: KeyRuns
  countChanges: CountChanges
  /** The time for commands without a time of their own. */
  now: () => Instant
}>
