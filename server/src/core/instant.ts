/**
 * A point in time: whole microseconds since 1970-01-01T00:00:00Z.
 *
 * A number, not a Date, because the wire contracts promise microseconds and a Date holds
 * milliseconds. Safe integers reach the year 2255; edges clamp what lies beyond.
 */
export type Instant = number

/** Where the time comes from. Tests give their own, so nothing has to sleep. */
export interface Clock {
  now(): Instant
}

export const usPerMs = 1_000
export const usPerSecond = 1_000_000
export const instantMin: Instant = Number.MIN_SAFE_INTEGER
export const instantMax: Instant = Number.MAX_SAFE_INTEGER

/**
 * `durationUs` later, or the last instant there is: "never expires" must not run over the end of time.
 * A fraction counts as a whole microsecond: never too early.
 */
export function later(instant: Instant, durationUs: number): Instant {
  return Math.min(Math.ceil(instant + durationUs), instantMax)
}

export function toDate(instant: Instant): Date {
  return new Date(Math.floor(instant / usPerMs))
}

export function fromDate(date: Date): Instant {
  return date.getTime() * usPerMs
}
