/**
 * A point in time: whole microseconds since 1970-01-01T00:00:00Z.
 *
 * It is a number because the wire contracts promise microseconds and a Date holds only milliseconds. Safe
 * integers reach the year 2255; the API clamps later times.
 */
export type Instant = number

/** Tests pass a clock that they advance, so that no test has to sleep. */
export interface Clock {
  now(): Instant
}

export const usPerMs = 1_000
export const usPerSecond = 1_000_000
export const instantMin: Instant = Number.MIN_SAFE_INTEGER
export const instantMax: Instant = Number.MAX_SAFE_INTEGER

/**
 * Adds a duration, up to `instantMax`: the sum with a duration that means "never" must stay a safe integer.
 * Rounds a fraction up, so that the result is never too early.
 */
export function addDuration(instant: Instant, durationUs: number): Instant {
  return Math.min(Math.ceil(instant + durationUs), instantMax)
}

export function toDate(instant: Instant): Date {
  return new Date(Math.floor(instant / usPerMs))
}

export function toInstant(date: Date): Instant {
  return date.getTime() * usPerMs
}
