import { type Instant, toDate, usPerMs } from '../core/instant.ts'

/** RFC 3339 in UTC, to the microsecond: `2026-01-02T03:04:05.000006Z`. */
export function formatInstant(instant: Instant): string {
  const millis = toDate(instant).toISOString()
  const micros = ((instant % usPerMs) + usPerMs) % usPerMs
  return `${millis.slice(0, -1)}${String(micros).padStart(3, '0')}Z`
}
