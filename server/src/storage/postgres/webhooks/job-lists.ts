/** Lists of jobs, and the times of their changes. */
import type { Item } from '../../../core/items/item.ts'
import type { JobTimes } from '../../contract/webhooks.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import { orderQueuedItems, toTimeRange } from '../../shared/rows/webhook-rows.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s } from '../connection/encode-arrays.ts'
import { readColumns, stateCodes, toItem } from '../items/rows.ts'

const queuedColumns = readColumns
  .filter((name) => name !== 'headers' && name !== 'payload')
  .map((name) => `t.${name}`)
  .join(', ')

/** Leased rows stay in the index of available items, at its front; there are few of them. */
const queuedItems: Statement = {
  name: 'queued-items',
  text: `with q as (select id from redrive.queues where name = $1)
    (select ${queuedColumns} from redrive.items_live t
      where t.queue_id = (select id from q) and t.partition = 0 and t.state = ${stateCodes.waiting}
        and t.available_at is null and t.ended_at is null order by -t.priority, t.id limit $2::int4)
    union all
    (select ${queuedColumns} from redrive.items_live t
      where t.queue_id = (select id from q) and t.available_at is not null and t.state = ${stateCodes.scheduled}
      order by t.available_at, t.id limit $2::int4)`,
}

export async function listQueuedItems(
  connections: Connections,
  queue: string,
  countMax: number,
): Promise<Item[]> {
  const rows = await connections.read(queuedItems, [queue, countMax])
  return orderQueuedItems(
    rows.map((row) => toItem(row, queue)),
    countMax,
  )
}

const readyRows = `select t.updated_at from redrive.items_live t where t.queue_id = q.id and t.partition = 0
  and t.available_at is null and t.ended_at is null and t.state = ${stateCodes.waiting}`
const scheduledRows = `select t.updated_at from redrive.items_live t
  where t.queue_id = q.id and t.available_at is not null`
/** The leases of a consumer are few, and at the front of the index of available items. */
const openRows = `select t.updated_at, t.state from redrive.items_live t where t.queue_id = q.id and t.partition = 0
  and t.available_at is null and t.ended_at is null order by -t.priority, t.id limit 10000`
const letterRow = (state: number, order: string) => `(select t.updated_at from redrive.items_sourced t
  where t.queue_id = d.id and t.state = ${state} order by t.updated_at ${order}, t.id ${order} limit 1)`
const letterRange = (states: readonly number[]) => ({
  oldest: `least(${states.map((state) => letterRow(state, '')).join(', ')})`,
  newest: `greatest(${states.map((state) => letterRow(state, 'desc')).join(', ')})`,
})
const dead = letterRange([stateCodes.waiting, stateCodes.scheduled, stateCodes.dead])
const done = letterRange([stateCodes.done])
const bothEnds = (first: string, last: string) => ({
  oldest: `least((${first}), (${last}))`,
  newest: `greatest((${first}), (${last}))`,
})
const ready = bothEnds(
  `${readyRows} order by -t.priority, t.id limit 1`,
  `${readyRows} order by -t.priority desc, t.id desc limit 1`,
)
const scheduled = bothEnds(
  `${scheduledRows} order by t.available_at, t.id limit 1`,
  `${scheduledRows} order by t.available_at desc, t.id desc limit 1`,
)
const ended = (aggregate: string) =>
  `(select ${aggregate}(t.ended_at) from redrive.items_live t where t.queue_id = q.id and t.ended_at is not null)`

const jobTimes: Statement = {
  name: 'job-times',
  text: `select k.number, l.oldest as inflight_oldest, l.newest as inflight_newest,
      least(${ready.oldest}, ${scheduled.oldest}) as queued_oldest,
      greatest(${ready.newest}, ${scheduled.newest}) as queued_newest,
      least(${ended('min')}, ${done.oldest}) as delivered_oldest,
      greatest(${ended('max')}, ${done.newest}) as delivered_newest,
      ${dead.oldest} as dead_oldest, ${dead.newest} as dead_newest
    from redrive.webhook_consumers k
      join redrive.queues q on q.name = k.queue join redrive.queues d on d.name = k.dead_queue
      cross join lateral (
        select min(o.updated_at) as oldest, max(o.updated_at) as newest from (${openRows}) o
        where o.state = ${stateCodes.leased}) l
    where k.number = any ($1::int4[])`,
}

export async function readJobTimes(
  connections: Connections,
  numbers: readonly number[],
): Promise<JobTimes[]> {
  const rows = await connections.read(jobTimes, [encodeInt4s(numbers)])
  return rows.map((row) => {
    const range = (state: string) =>
      toTimeRange({ oldest: row[`${state}_oldest`], newest: row[`${state}_newest`] })
    return {
      consumerNumber: readNumber(row, 'number'),
      queued: range('queued'),
      inflight: range('inflight'),
      delivered: range('delivered'),
      dead: range('dead'),
    }
  })
}
