import type { Instant } from '../../../core/time/instant.ts'
import type { RecordLeaseCalls } from '../../contract/queues.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

/**
 * Skips queues whose row another transaction is changing or deleting: the next record comes in a few seconds.
 * The lock keeps the queue until the commit, so that no row is left behind by a deletion. All servers lock
 * the rows in the order of their ids.
 */
const record: Statement = {
  name: 'record-lease-calls',
  text: `insert into redrive.lease_calls as c (queue_id, at)
    select q.id, w.at from unnest($1::text[], $2::int8[]) as w(name, at) join redrive.queues q on q.name = w.name
    order by q.id for key share of q skip locked
    on conflict (queue_id) do update set at = excluded.at where excluded.at > c.at`,
}

export async function recordLeaseCalls(
  { connection }: Transaction,
  { calls }: RecordLeaseCalls,
): Promise<undefined> {
  const newest = new Map<string, Instant>()
  for (const { queue, at } of calls) newest.set(queue, Math.max(at, newest.get(queue) ?? at))
  await connection.query(record, [encodeTexts([...newest.keys()]), encodeInt8s([...newest.values()])])
}

const read: Statement = {
  name: 'read-lease-call',
  text: `select c.at from redrive.lease_calls c join redrive.queues q on q.id = c.queue_id where q.name = $1`,
}

export async function readLeaseCall(connections: Connections, name: string): Promise<Instant | null> {
  const [row] = await connections.read(read, [name])
  return row === undefined ? null : readNumber(row, 'at')
}
