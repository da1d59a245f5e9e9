import type { Usage, UsageQuery } from '../../contract/counts.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'

const itemsSql = `select count(distinct q.id) as queues,
    coalesce(sum(c.waiting + c.scheduled + c.leased + c.done + c.dead + c.discarded), 0) as items
  from queues q left join counts c on c.queue_id = q.id where q.namespace = ?`

const bytesSql = `select coalesce(sum(length(i.payload)), 0) as bytes
  from queues q join items i on i.queue_id = q.id where q.namespace = ?`

export function readUsage(database: Database, { namespace, isWithBytes }: UsageQuery): Usage {
  const row = database.get(itemsSql, namespace) ?? {}
  const bytes = isWithBytes ? readNumber(database.get(bytesSql, namespace) ?? {}, 'bytes') : null
  return { queues: readNumber(row, 'queues'), items: readNumber(row, 'items'), bytes }
}
