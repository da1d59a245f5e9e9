/** The header `Retry-After`: a number of seconds or an HTTP date (RFC 9110). */
import { parseHttpDate } from '../../time/http-date.ts'
import { addDuration, type Instant, usPerSecond } from '../../time/instant.ts'

/**
 * The instant that a receiver asks to wait for. Undefined: the header is unreadable or in the past. At most
 * `delayUsMax` from now, so that a receiver cannot postpone a job for ever.
 */
export function parseRetryAfter(text: string | null, now: Instant, delayUsMax: number): Instant | undefined {
  if (text === null) return undefined
  const value = text.trim()
  const at = /^\d{1,12}$/.test(value) ? addDuration(now, Number(value) * usPerSecond) : parseHttpDate(value)
  if (at === undefined || at <= now) return undefined
  return Math.min(at, addDuration(now, delayUsMax))
}
