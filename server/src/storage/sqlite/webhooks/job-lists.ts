/** Lists of jobs, and the times of their changes. */
import type { Item } from '../../../core/items/item.ts'
import type { JobTimes, TimeRange } from '../../contract/webhooks.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import { joinTimeRanges, orderQueuedItems, toTimeRange } from '../../shared/rows/webhook-rows.ts'
import type { Bound, Database, Values } from '../connection/database.ts'
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

/**
 * Every query reads the ends of an index. `min` and `max` in one statement would read all of it, so each end
 * has a subquery of its own. Leased and scheduled jobs of all queues share an index by due time, of which
 * only the first and the last rows are read.
 */
export function readJobTimes(database: Database, numbers: readonly number[]): JobTimes[] {
  const open = Map.groupBy(database.readArrays(openSql), (row) => readNumber(row, 0))
  return numbers.flatMap((consumerNumber): JobTimes[] => {
    const consumer = getConsumerByNumber(database, consumerNumber)
    if (consumer === undefined) return []
    const [queueId = 0] = readQueueIds(database, [consumer.queue])
    const [deadQueueId = 0] = readQueueIds(database, [consumer.deadQueue])
    const read = (sql: string, ...values: Bound[]) => toTimeRange(database.get(sql, ...values) ?? {})
    const readLetters = (states: readonly number[]) =>
      states.map((state) => read(letterTimesSql, deadQueueId, state)).reduce(joinTimeRanges, null)
    const own = open.get(queueId) ?? []
    return [
      {
        consumerNumber,
        queued: joinTimeRanges(read(queuedTimesSql, queueId), rangeOf(own, 0)),
        inflight: rangeOf(own, 1),
        delivered: joinTimeRanges(read(endedTimesSql, queueId), readLetters([2])),
        dead: readLetters([0, 3, 5]),
      },
    ]
  })
}

/** `rows`: of `openSql`. */
function rangeOf(rows: readonly Values[], state: number): TimeRange | null {
  let range: TimeRange | null = null
  for (const row of rows) {
    if (readNumber(row, 1) !== state) continue
    const at = readNumber(row, 2)
    range = joinTimeRanges(range, { oldestAt: at, newestAt: at })
  }
  return range
}

/** The best and the last priority have the oldest and the newest jobs, unless there are more than two. */
const readyEdge = (order: string) => `(select updated_at from items
  where queue_id = ?1 and partition = 0 and state = 0 and available_at is null order by ${order} limit 1)`
const edges = ['priority desc, id', 'priority, id desc'].map(readyEdge).join(', ')
const queuedTimesSql = `select min(${edges}) as oldest, max(${edges}) as newest`

const openEnd = (order: string) => `select * from (select queue_id, state, updated_at, available_at from items
  where due_at is not null order by due_at ${order}, id ${order} limit 5000)
  where state = 1 or (state = 0 and available_at is not null)`
const openSql = `${openEnd('')} union all ${openEnd('desc')}`

const endedEdge = (order: string) => `(select ended_at from items
  where queue_id = ?1 and state = 2 and ended_at is not null order by ended_at ${order}, id ${order} limit 1)`
const endedTimesSql = `select ${endedEdge('')} as oldest, ${endedEdge('desc')} as newest`
const letterEdge = (order: string) => `(select updated_at from items
  where queue_id = ?1 and letter_state = ?2 and letter_state is not null
  order by updated_at ${order}, id ${order} limit 1)`
const letterTimesSql = `select ${letterEdge('')} as oldest, ${letterEdge('desc')} as newest`
