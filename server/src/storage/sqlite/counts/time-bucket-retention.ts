/** Deletes the counts of hours that no trend shows any more. */
import type { Instant } from '../../../core/time/instant.ts'
import type { Database } from '../connection/database.ts'
import { usPerHour } from './letter-counts.ts'

const hoursKept = 7 * 24

export function dropOldBuckets(database: Database, now: Instant): void {
  const from = Math.floor(now / usPerHour) - hoursKept
  // Set the first hour that `verify` compares before any hour is deleted, so that it never misses one.
  database.run('update horizon set arrivals_from = ? where arrivals_from < ?', from, from)
  // The last hour of a group stays: it has the time at which the group was last seen.
  database.run(
    `delete from group_hours where hour < ? and exists (
       select 1 from group_hours n where n.group_id = group_hours.group_id and n.hour > group_hours.hour)`,
    from,
  )
}
