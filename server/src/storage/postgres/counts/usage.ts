import type { Usage, UsageQuery } from '../../contract/counts.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Connections } from '../connection/connections.ts'

const itemsSql = `select count(distinct q.id)::bigint as queues,
    coalesce(sum(c.waiting + c.scheduled + c.leased + c.done + c.dead + c.discarded), 0)::bigint as items
  from redrive.queues q left join redrive.counts c on c.queue_id = q.id where q.namespace = $1`

const bytesSql = `select coalesce(sum(octet_length(i.payload)), 0)::bigint as bytes
  from redrive.queues q join redrive.items i on i.queue_id = q.id where q.namespace = $1`

export async function readUsage(
  connections: Connections,
  { namespace, isWithBytes }: UsageQuery,
): Promise<Usage> {
  const [row = {}] = await connections.read({ text: itemsSql }, [namespace])
  const usage = { queues: readNumber(row, 'queues'), items: readNumber(row, 'items') }
  if (!isWithBytes) return { ...usage, bytes: null }
  const [sum = {}] = await connections.read({ text: bytesSql }, [namespace])
  return { ...usage, bytes: readNumber(sum, 'bytes') }
}
