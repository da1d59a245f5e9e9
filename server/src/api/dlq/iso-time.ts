import { type Instant, instantMax, instantMin, usPerMs, usPerSecond } from '../../core/instant.ts'
import { InvalidRequest } from '../invalid-request.ts'

/** The zone may begin with a space: that is what a plus sign in a URL becomes. */
const iso =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+\- ]\d\d(?::?\d\d)?)?)?$/i

const usPerDay = 24 * 3_600 * usPerSecond

/** The first and the last instant that an ISO 8601 date or time means. Without a zone it is in UTC. */
export type IsoTime = Readonly<{ first: Instant; last: Instant }>

/** `field` is named by the error for what is no date or time. */
export function readIsoTime(field: string, text: string): IsoTime {
  const instant = parse(text.trim())
  if (instant === undefined) throw new InvalidRequest([{ field, message: 'is not an ISO 8601 date or time' }])
  const isWholeDay = /^[\d-]{10}$/.test(text.trim())
  return { first: bounded(instant), last: bounded(isWholeDay ? instant + usPerDay - 1 : instant) }
}

function parse(text: string): number | undefined {
  const match = iso.exec(text)
  if (match === null) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  const zoneMinutes = readZone(match[8] ?? 'Z')
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // A date that is not in the calendar would silently be another one.
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

function bounded(us: number): Instant {
  return Math.min(Math.max(us, instantMin), instantMax)
}
