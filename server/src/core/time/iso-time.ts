import { type Instant, usPerMs, usPerSecond } from './instant.ts'

/** The zone may start with a space, because a plus sign in a URL is decoded as a space. */
const iso =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+\- ]\d\d(?::?\d\d)?)?)?$/i

/** The form of most times: `Date.parse` reads it faster, and exactly if the day exists in every month. */
const common = /^\d{4}-\d\d-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{3})?Z$/

/**
 * Parses a date or time in ISO 8601. A date means its first instant; a time without a zone is in UTC. Digits
 * after the microsecond are cut off. Returns undefined for any other text and for a date that does not exist,
 * such as the 30th of February, which `Date` would turn into the 2nd of March.
 *
 * Every API parses times with this function after it has checked which of these forms it accepts. The result
 * may be outside of `instantMin` and `instantMax`.
 */
export function parseIsoInstant(text: string): Instant | undefined {
  if (common.test(text)) {
    const ms = Date.parse(text)
    if (!Number.isNaN(ms)) return ms * usPerMs
  }
  const match = iso.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  const zoneMinutes = parseZoneMinutes(match[8] ?? 'Z')
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  if (hour > 23 || minute > 59 || second > 59 || zoneMinutes === undefined) return undefined
  const seconds = (hour * 60 + minute - zoneMinutes) * 60 + second
  const fractionUs = Number((match[7] ?? '').padEnd(6, '0').slice(0, 6))
  return date.getTime() * usPerMs + seconds * usPerSecond + fractionUs
}

function parseZoneMinutes(text: string): number | undefined {
  if (text.toUpperCase() === 'Z') return 0
  const [hours, minutes] = [Number(text.slice(1, 3)), Number(text.slice(3).replace(':', '') || 0)]
  if (hours > 23 || minutes > 59) return undefined
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}
