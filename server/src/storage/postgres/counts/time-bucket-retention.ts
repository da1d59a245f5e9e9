/**
 * From which minute on open letters are counted by the time of their death. Only ever moves forward, so a
 * server that remembers an earlier one writes a little too much, and nothing that is missing.
 */
import type { Instant } from '../../../core/instant.ts'
import type { Connection, Statement } from '../connection/connections.ts'
import { minuteOf, minutesPerHour } from './letter-counts.ts'

const hoursKept = 25
const arrivalHoursKept = 7 * 24
const rememberedMs = 60_000

/** The first hour of which all arrivals are kept: both move at the same time. */
export const arrivalsFrom = `(select minute / ${minutesPerHour} + ${hoursKept - arrivalHoursKept} from redrive.horizon)`

const readHorizon: Statement = { name: 'read-horizon', text: 'select minute from redrive.horizon' }

export class Horizon {
  #minute = Number.NEGATIVE_INFINITY
  #readAt = Number.NEGATIVE_INFINITY

  async minute(connection: Connection): Promise<number> {
    if (performance.now() - this.#readAt > rememberedMs) {
      const [row] = await connection.query(readHorizon)
      this.#minute = row?.minute as number
      this.#readAt = performance.now()
    }
    return this.#minute
  }
}

/** Forgets what no question is asked about any more. In its own transaction. */
export async function moveHorizon(connection: Connection, now: Instant): Promise<void> {
  const hour = Math.floor(minuteOf(now) / minutesPerHour)
  const minute = (hour - hoursKept) * minutesPerHour
  await connection.query({ text: 'update redrive.horizon set minute = $1 where minute < $1' }, [minute])
  await connection.query({
    // What somebody just writes stays for the next time.
    text: `delete from redrive.open_letters where ctid = any (array(
      select o.ctid from redrive.open_letters o
      where o.number * o.span::int8 < (select minute from redrive.horizon) for update skip locked))`,
    isLong: true,
  })
  // The last hour of a group stays: it says when it was last seen.
  const arrivals = `delete from redrive.group_hours where ctid = any (array(
    select h.ctid from redrive.group_hours h where h.hour < $1 and exists (
      select from redrive.group_hours n
      where n.queue_id = h.queue_id and n.group_id = h.group_id and n.hour > h.hour)
    for update of h skip locked))`
  await connection.query({ text: arrivals, isLong: true }, [hour - arrivalHoursKept])
}
