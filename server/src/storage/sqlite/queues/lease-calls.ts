import type { Instant } from '../../../core/time/instant.ts'
import type { RecordLeaseCalls } from '../../contract/queues.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

const recordSql = `insert into lease_calls (queue_id, at) values (?, ?)
  on conflict (queue_id) do update set at = excluded.at where excluded.at > lease_calls.at`

export function recordLeaseCalls(
  { database, queueCache }: Transaction,
  { calls }: RecordLeaseCalls,
): undefined {
  for (const { queue, at } of calls) {
    const queueRow = queueCache.find(queue)
    if (queueRow !== undefined) database.run(recordSql, queueRow.id, at)
  }
}

const readSql = 'select c.at from lease_calls c join queues q on q.id = c.queue_id where q.name = ?'

export function readLeaseCall(database: Database, name: string): Instant | null {
  const row = database.get(readSql, name)
  return row === undefined ? null : readNumber(row, 'at')
}
