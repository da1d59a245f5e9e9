import { type Instant, toDate, usPerMs } from '../../../core/time/instant.ts'
import { parseIsoInstant } from '../../../core/time/iso-time.ts'

/** Formats as RFC 3339 in UTC with microseconds: `2026-01-02T03:04:05.000006Z`. */
export function formatInstant(instant: Instant): string {
  const millis = toDate(instant).toISOString()
  const micros = ((instant % usPerMs) + usPerMs) % usPerMs
  return `${millis.slice(0, -1)}${String(micros).padStart(3, '0')}Z`
}

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i

/** Cuts digits below the microsecond. Returns undefined if the text is not a valid RFC 3339 time. */
export function parseInstant(text: string): Instant | undefined {
  return rfc3339.test(text) ? parseIsoInstant(text) : undefined
}
