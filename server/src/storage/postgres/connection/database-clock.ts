/**
 * The time of the database, by which all servers on it go.
 *
 * Each answer of the database that has its time is a measurement: the database read its clock between the
 * sending of the question and the arrival of the answer. So at the arrival, the time of the database is
 * between the time in the answer and that time plus the round trip. A measurement that contradicts the
 * current estimate moves it to the nearest possible time; all others change nothing. So the estimate is as
 * exact as the shortest round trip.
 *
 * Between measurements, time passes by the monotonic clock of the process. The wall clock of the machine is
 * only compared, to report how far it is off.
 */
import { type Clock, type Instant, usPerMs } from '../../../core/time/instant.ts'
import type { StoreClock } from '../../contract/storage.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Connection, Statement } from './connection.ts'

/** The time of the database as an instant. `sentMs` and `receivedMs`: of the monotonic clock. */
export type ClockSample = Readonly<{ databaseNow: Instant; sentMs: number; receivedMs: number }>

/** An expression with the time of the database as an instant. */
export const databaseNowSql = '(extract(epoch from clock_timestamp()) * 1000000)::int8'

const readDatabaseNow: Statement = { name: 'database-now', text: `select ${databaseNowSql} as now` }

export interface DatabaseClock extends StoreClock {
  observe(sample: ClockSample): void
  /** Asks the database for its time. Returns that time, or `at` if that is earlier. */
  bound(connection: Pick<Connection, 'query'>, at: Instant): Promise<Instant>
}

export function createDatabaseClock(
  machineClock: Clock,
  elapsedMs: () => number = () => performance.now(),
): DatabaseClock {
  /** The estimated time of the database when the monotonic clock was at zero. */
  let origin: number | undefined

  const observe = ({ databaseNow, sentMs, receivedMs }: ClockSample): void => {
    const first = databaseNow - receivedMs * usPerMs
    const roundTripUs = (receivedMs - sentMs) * usPerMs
    if (origin === undefined) origin = first + roundTripUs / 2
    else origin = Math.min(Math.max(origin, first), first + roundTripUs)
  }
  const now = (): Instant =>
    origin === undefined ? machineClock.now() : Math.floor(origin + elapsedMs() * usPerMs)

  return {
    now,
    observe,
    readMachineOffsetUs: () => (origin === undefined ? null : machineClock.now() - now()),
    bound: async (connection, at) => {
      const sentMs = elapsedMs()
      const [row = {}] = await connection.query(readDatabaseNow)
      const databaseNow = readNumber(row, 'now')
      observe({ databaseNow, sentMs, receivedMs: elapsedMs() })
      return Math.min(at, databaseNow)
    },
  }
}

/** For tests: goes by the given clock, and does not look at the clock of the database. */
export function createGivenClock(clock: Clock): DatabaseClock {
  return {
    now: () => clock.now(),
    readMachineOffsetUs: () => null,
    observe: () => {},
    bound: async (_connection, at) => at,
  }
}
