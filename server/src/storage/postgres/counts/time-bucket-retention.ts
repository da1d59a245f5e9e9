/**
 * How long letters are counted by minute and hour. Open letters are counted by the time of their death from a
 * first minute on. It only moves forward: a server that has cached an earlier minute writes a few counts too
 * many, which are deleted later, and misses none.
 */
import type { Instant } from '../../../core/time/instant.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { minutesPerHour, toMinute } from './letter-counts.ts'

const hoursKept = 25
const arrivalHoursKept = 7 * 24
const cachedMs = 60_000

/** The first hour of which all arrivals are kept. It moves together with the first minute. */
export const arrivalsFrom = `(select minute / ${minutesPerHour} + ${hoursKept - arrivalHoursKept} from redrive.horizon)`

const readFirstMinute: Statement = { name: 'read-horizon', text: 'select minute from redrive.horizon' }

export class FirstMinuteCache {
  #minute = Number.NEGATIVE_INFINITY
  #readAt = Number.NEGATIVE_INFINITY

  async read(connection: Connection): Promise<number> {
    if (performance.now() - this.#readAt > cachedMs) {
      const [row = {}] = await connection.query(readFirstMinute)
      this.#minute = readNumber(row, 'minute')
      this.#readAt = performance.now()
    }
    return this.#minute
  }
}

/** Deletes the counts of times that no query asks for any more. Call it in a transaction of its own. */
export async function dropOldBuckets(connection: Connection, now: Instant): Promise<void> {
  const hour = Math.floor(toMinute(now) / minutesPerHour)
  const minute = (hour - hoursKept) * minutesPerHour
  await connection.query({ text: 'update redrive.horizon set minute = $1 where minute < $1' }, [minute])
  await connection.query({
    // Rows that another transaction has locked stay for the next run.
    text: `delete from redrive.open_letters where ctid = any (array(
      select o.ctid from redrive.open_letters o
      where o.number * o.span::int8 < (select minute from redrive.horizon) for update skip locked))`,
    isLong: true,
  })
  // The last hour of a group stays: it has the time at which the group was last seen.
  const arrivals = `delete from redrive.group_hours where ctid = any (array(
    select h.ctid from redrive.group_hours h where h.hour < $1 and exists (
      select from redrive.group_hours n
      where n.queue_id = h.queue_id and n.group_id = h.group_id and n.hour > h.hour)
    for update of h skip locked))`
  await connection.query({ text: arrivals, isLong: true }, [hour - arrivalHoursKept])
}
