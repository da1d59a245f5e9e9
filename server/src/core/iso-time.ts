import { type Instant, usPerMs, usPerSecond } from './instant.ts'

/** The zone may begin with a space: that is what a plus sign in a URL becomes. */
const iso =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+\- ]\d\d(?::?\d\d)?)?)?$/i

/**
 * A date or time as ISO 8601 writes it; a date is its first instant, and without a zone it is in UTC. Digits beyond the
 * microsecond are cut off. Undefined for what is none, and for what is not in the calendar: `Date` makes the
 * 2nd of March of a 30th of February. Every edge reads times by this, and says itself which forms it takes.
 *
 * May lie beyond the instants that can be kept.
 */
export function isoInstant(text: string): Instant | undefined {
  const match = iso.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  const zoneMinutes = readZone(match[8] ?? 'Z')
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  if (hour > 23 || minute > 59 || second > 59 || zoneMinutes === undefined) return undefined
  const seconds = (hour * 60 + minute - zoneMinutes) * 60 + second
  const fractionUs = Number((match[7] ?? '').padEnd(6, '0').slice(0, 6))
  return date.getTime() * usPerMs + seconds * usPerSecond + fractionUs
}

function readZone(text: string): number | undefined {
  if (text.toUpperCase() === 'Z') return 0
  const [hours, minutes] = [Number(text.slice(1, 3)), Number(text.slice(3).replace(':', '') || 0)]
  if (hours > 23 || minutes > 59) return undefined
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}
