/** Lists of jobs, and the times of their changes. */
import type { Item } from '../../../core/items/item.ts'
import type { JobTimes } from '../../contract/webhooks.ts'
import { joinTimeRanges, orderQueuedItems, toTimeRange } from '../../shared/rows/webhook-rows.ts'
import type { Bound, Database } from '../connection/database.ts'
import { omitColumns, toItem } from '../items/rows.ts'
import { readQueueIds } from '../queues/queue-names.ts'
import { getConsumerByNumber } from './consumers.ts'

const headColumnsWithKey = omitColumns(['headers', 'payload'])
const dueSql = `select ${headColumnsWithKey} from items
  where queue_id = ? and partition = 0 and state = 0 and available_at is null order by priority desc, id limit +?`
const laterSql = `select ${headColumnsWithKey} from items
  where due_at is not null and queue_id = ? and partition = 0 and state = 0 and available_at is not null
  order by priority desc, id limit +?`

export function listQueuedItems(database: Database, queue: string, countMax: number): Item[] {
  const [queueId] = readQueueIds(database, [queue])
  if (queueId === undefined) return []
  const due = database.readArrays(dueSql, queueId, countMax)
  const later = database.readArrays(laterSql, queueId, countMax)
  const items = [...due, ...later].map((row) => toItem(row, queue))
  return orderQueuedItems(items, countMax)
}

export function readJobTimes(database: Database, numbers: readonly number[]): JobTimes[] {
  return numbers.flatMap((consumerNumber): JobTimes[] => {
    const consumer = getConsumerByNumber(database, consumerNumber)
    if (consumer === undefined) return []
    const [queueId] = readQueueIds(database, [consumer.queue])
    const [deadQueueId] = readQueueIds(database, [consumer.deadQueue])
    const read = (sql: string, ...values: Bound[]) => toTimeRange(database.get(sql, ...values) ?? {})
    const [id, deadId] = [queueId ?? 0, deadQueueId ?? 0]
    return [
      {
        consumerNumber,
        queued: joinTimeRanges(read(queuedTimesSql, id), read(laterTimesSql, id)),
        inflight: read(leasedTimesSql, id),
        delivered: joinTimeRanges(read(endedTimesSql, id), read(letterTimesSql('2'), deadId)),
        dead: read(letterTimesSql('0, 3, 5'), deadId),
      },
    ]
  })
}

/** The best and the last priority have the oldest and the newest jobs, unless there are more than two. */
const readyEdge = (order: string) => `(select updated_at from items
  where queue_id = ?1 and partition = 0 and state = 0 and available_at is null order by ${order} limit 1)`
const edges = ['priority desc, id', 'priority, id desc'].map(readyEdge).join(', ')
const queuedTimesSql = `select min(${edges}) as oldest, max(${edges}) as newest`
const openRows = `select updated_at, state, available_at from items
  where due_at is not null and queue_id = ? and state < 2 limit 10000`
const laterTimesSql = `select min(updated_at) as oldest, max(updated_at) as newest from (${openRows})
  where state = 0 and available_at is not null`
const leasedTimesSql = `select min(updated_at) as oldest, max(updated_at) as newest from (${openRows}) where state = 1`
const endedTimesSql = `select min(ended_at) as oldest, max(ended_at) as newest from items
  where queue_id = ? and state = 2 and ended_at is not null`
const letterTimesSql = (
  states: string,
) => `select min(updated_at) as oldest, max(updated_at) as newest from items
  where queue_id = ? and letter_state in (${states}) and letter_state is not null`
