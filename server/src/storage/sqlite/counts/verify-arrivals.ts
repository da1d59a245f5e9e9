/**
 * Checks that the counts of arrivals are not too low for the letters that exist. Reads all letters, also
 * those in the archive. Counts that are too high cannot be found, see docs/decisions/0016.
 */
import type { QueueDifference } from '../../contract/difference.ts'
import { compareArrivalSums } from '../../shared/counts/compare-counts.ts'
import type { Database } from '../connection/database.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import { usPerHour } from './letter-counts.ts'

/** Rounded down, also before 1970. */
const printHour = (instant: string): string =>
  `(${instant} - (${instant} % ${usPerHour} + ${usPerHour}) % ${usPerHour}) / ${usPerHour}`
const kept = ['items', 'archive']
  .map(
    (table) => `select queue_id, group_id, ${printHour('coalesce(died_at, created_at)')} as died,
      ${printHour('created_at')} as created from ${table} where group_id is not null`,
  )
  .join(' union all ')
const arrivalsFrom = '(select arrivals_from from horizon)'
const hours = `select g.queue_id, c.group_id, c.hour, c.n from group_hours c join groups g on g.id = c.group_id
  where c.hour >= ${arrivalsFrom}`

/** Each letter was counted in the hour of its death, which never changes, but maybe in another group. */
const shortHours = `select l.queue_id, sum(coalesce(h.n, 0)) as counted, sum(l.n) as actual
  from (select queue_id, died as hour, count(*) as n from (${kept}) where died >= ${arrivalsFrom} group by 1, 2) l
    left join (select queue_id, hour, sum(n) as n from (${hours}) group by 1, 2) h using (queue_id, hour)
  where l.n > coalesce(h.n, 0) group by l.queue_id`

/**
 * Each letter was counted in its present group, in the hour of its death or later. The first hour is left
 * out, as in PostgreSQL.
 */
const shortGroups = `select l.queue_id, sum(coalesce(h.n, 0)) as counted, sum(l.n) as actual
  from (select queue_id, group_id, count(*) as n from (${kept}) where min(died, created) > ${arrivalsFrom} group by 1, 2) l
    left join (select group_id, sum(n) as n from (${hours}) group by 1) h using (group_id)
  where l.n > coalesce(h.n, 0) group by l.queue_id`

export function compareArrivals(database: Database): QueueDifference[] {
  return compareArrivalSums(readQueueNames(database), database.all(shortHours), database.all(shortGroups))
}
