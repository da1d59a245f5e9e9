/**
 * Checks that the counts of arrivals are not too low for the letters that exist. Reads all letters, also
 * those in the archive. Counts that are too high cannot be found, see docs/decisions/0016.
 */
import type { QueueDifference } from '../../contract/difference.ts'
import { compareArrivalSums } from '../../shared/counts/compare-counts.ts'
import type { Connection } from '../connection/connection.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import { usPerHour } from './letter-counts.ts'
import { arrivalsFrom } from './time-bucket-retention.ts'

const kept = ['items_sourced', 'archive']
  .map(
    (table) => `select f.queue_id, f.group_id, coalesce(f.died_at, f.created_at) / ${usPerHour} as died,
      f.created_at / ${usPerHour} as created from redrive.${table} f where f.group_id is not null`,
  )
  .join(' union all ')
const hours = `select c.queue_id, c.group_id, c.hour, c.n from redrive.group_hours c where c.hour >= ${arrivalsFrom}`

/** Each letter was counted in the hour of its death, which never changes, but maybe in another group. */
const shortHours = `select l.queue_id, sum(coalesce(h.n, 0))::int8 as counted, sum(l.n)::int8 as actual
  from (select k.queue_id, k.died as hour, count(*) as n from (${kept}) k where k.died >= ${arrivalsFrom} group by 1, 2) l
    left join (select c.queue_id, c.hour, sum(c.n) as n from (${hours}) c group by 1, 2) h using (queue_id, hour)
  where l.n > coalesce(h.n, 0) group by l.queue_id`

/**
 * Each letter was counted in its present group, in the hour of its death or later. The first hour is left
 * out: servers whose clocks differ may have deleted a part of it.
 */
const shortGroups = `select l.queue_id, sum(coalesce(h.n, 0))::int8 as counted, sum(l.n)::int8 as actual
  from (select k.queue_id, k.group_id, count(*) as n from (${kept}) k
      where least(k.died, k.created) > ${arrivalsFrom} group by 1, 2) l
    left join (select c.group_id, sum(c.n) as n from (${hours}) c group by 1) h using (group_id)
  where l.n > coalesce(h.n, 0) group by l.queue_id`

export async function compareArrivals(connection: Connection): Promise<QueueDifference[]> {
  return compareArrivalSums(
    await readQueueNames(connection),
    await connection.query({ text: shortHours, isLong: true }),
    await connection.query({ text: shortGroups, isLong: true }),
  )
}
