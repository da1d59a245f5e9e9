/**
 * Whether there were as many arrivals as the letters tell that are kept. Looks at all of them, also at those in the
 * archive. What more is counted is not looked at: see docs/decisions/0016.
 */
import { arrivalDifferences, type QueueDifference } from '../../contract/difference.ts'
import type { Connection } from '../connection/connections.ts'
import { arrivalsFrom } from './time-bucket-retention.ts'

const usPerHour = 3_600_000_000
const kept = ['items_sourced', 'archive']
  .map(
    (table) => `select f.queue_id, f.group_id, coalesce(f.died_at, f.created_at) / ${usPerHour} as died,
      f.created_at / ${usPerHour} as created from redrive.${table} f where f.group_id is not null`,
  )
  .join(' union all ')
const hours = `select c.queue_id, c.group_id, c.hour, c.n from redrive.group_hours c where c.hour >= ${arrivalsFrom}`

/** Each letter was an arrival in the hour in which it died, which never changes, though maybe in another group. */
const shortHours = `select l.queue_id, sum(coalesce(h.n, 0))::int8 as counted, sum(l.n)::int8 as actual
  from (select k.queue_id, k.died as hour, count(*) as n from (${kept}) k where k.died >= ${arrivalsFrom} group by 1, 2) l
    left join (select c.queue_id, c.hour, sum(c.n) as n from (${hours}) c group by 1, 2) h using (queue_id, hour)
  where l.n > coalesce(h.n, 0) group by l.queue_id`

/**
 * Each letter came to the group in which it is, when it died or since it is here. The first hour of all is left out:
 * servers whose clocks differ may each have a part of it.
 */
const shortGroups = `select l.queue_id, sum(coalesce(h.n, 0))::int8 as counted, sum(l.n)::int8 as actual
  from (select k.queue_id, k.group_id, count(*) as n from (${kept}) k
      where least(k.died, k.created) > ${arrivalsFrom} group by 1, 2) l
    left join (select c.group_id, sum(c.n) as n from (${hours}) c group by 1) h using (group_id)
  where l.n > coalesce(h.n, 0) group by l.queue_id`

export async function compareArrivals(connection: Connection): Promise<QueueDifference[]> {
  const names = await connection.query({ text: 'select id, name from redrive.queues' })
  return arrivalDifferences(
    new Map(names.map((row) => [row.id as number, row.name as string])),
    await connection.query({ text: shortHours, isLong: true }),
    await connection.query({ text: shortGroups, isLong: true }),
  )
}
