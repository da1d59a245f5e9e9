import type { Tally } from './counts.ts'
import type { Database } from './database.ts'
import type { QueueBook } from './queues.ts'

/** What a command works with: the connection, the queues, and the counts it changes. */
export type Transaction = Readonly<{ database: Database; book: QueueBook; tally: Tally }>
