/** Deletions of queues that are not finished, so that a server can finish them after a crash. */
import type { CancelQueueDeletion, DeleteQueue, QueueDeletion } from '../../contract/queues.ts'
import { encodeAttribution, toQueueDeletion } from '../../shared/rows/queue-deletion-row.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

const recordSql = `insert into queue_deletions (queue_id, at, is_forced, attribution) values (?, ?, ?, ?)
  on conflict (queue_id) do update set at = excluded.at, is_forced = excluded.is_forced,
    attribution = excluded.attribution`

export function recordQueueDeletion(
  { database }: Pick<Transaction, 'database'>,
  queueId: number,
  { isForced, pending }: Pick<DeleteQueue, 'isForced' | 'pending'>,
): void {
  if (pending === undefined) return
  const attribution = encodeAttribution(pending.attribution)
  database.run(recordSql, queueId, pending.at, isForced === true ? 1 : 0, attribution)
}

const readSql = `select q.name, q.created_at, d.at, d.is_forced, d.attribution
  from queue_deletions d join queues q on q.id = d.queue_id order by d.at, d.queue_id limit +?`

export function listQueueDeletions(database: Database, countMax: number): QueueDeletion[] {
  return database.all(readSql, countMax).map(toQueueDeletion)
}

const cancelSql = `delete from queue_deletions
  where queue_id in (select id from queues where name = ? and created_at = ?)`

export function cancelQueueDeletion(
  { database }: Transaction,
  { name, createdAt }: CancelQueueDeletion,
): undefined {
  database.run(cancelSql, name, createdAt)
}
