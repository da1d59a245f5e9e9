/** Deletions of queues that are not finished, so that a server can finish them after a crash. */
import type { CancelQueueDeletion, DeleteQueue, QueueDeletion } from '../../contract/queues.ts'
import { encodeAttribution, toQueueDeletion } from '../../shared/rows/queue-deletion-row.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import type { Transaction } from '../transaction.ts'

/** The row of the queue is locked by its deletion, so no row is left behind. */
const record: Statement = {
  text: `insert into redrive.queue_deletions (queue_id, at, is_forced, attribution) values ($1, $2, $3, $4)
    on conflict (queue_id) do update set at = excluded.at, is_forced = excluded.is_forced,
      attribution = excluded.attribution`,
}

export async function recordQueueDeletion(
  { connection }: Pick<Transaction, 'connection'>,
  queueId: number,
  { isForced, pending }: Pick<DeleteQueue, 'isForced' | 'pending'>,
): Promise<void> {
  if (pending === undefined) return
  const attribution = encodeAttribution(pending.attribution)
  await connection.query(record, [queueId, pending.at, isForced === true ? 1 : 0, attribution])
}

const read: Statement = {
  name: 'list-queue-deletions',
  text: `select q.name, q.created_at, d.at, d.is_forced, d.attribution
    from redrive.queue_deletions d join redrive.queues q on q.id = d.queue_id
    order by d.at, d.queue_id limit $1`,
}

export async function listQueueDeletions(
  connections: Connections,
  countMax: number,
): Promise<QueueDeletion[]> {
  return (await connections.read(read, [countMax])).map(toQueueDeletion)
}

const cancel: Statement = {
  text: `delete from redrive.queue_deletions
    where queue_id in (select id from redrive.queues where name = $1 and created_at = $2)`,
}

export async function cancelQueueDeletion(
  { connection }: Transaction,
  { name, createdAt }: CancelQueueDeletion,
): Promise<undefined> {
  await connection.query(cancel, [name, createdAt])
}
