import { type Instant, instantMax, instantMin, usPerSecond } from '../../../core/time/instant.ts'
import { parseIsoInstant } from '../../../core/time/iso-time.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'

const usPerDay = 24 * 3_600 * usPerSecond

/** The first and the last instant of an ISO 8601 date or time. Without an offset it is UTC. */
export type IsoTime = Readonly<{ first: Instant; last: Instant }>

/** Throws an error that names `field` if the text is not a date or time. */
export function parseIsoTime(field: string, text: string): IsoTime {
  const instant = parseIsoInstant(text.trim())
  if (instant === undefined) throw new InvalidRequest([{ field, message: 'is not an ISO 8601 date or time' }])
  const isWholeDay = /^[\d-]{10}$/.test(text.trim())
  return { first: clampInstant(instant), last: clampInstant(isWholeDay ? instant + usPerDay - 1 : instant) }
}

function clampInstant(us: number): Instant {
  return Math.min(Math.max(us, instantMin), instantMax)
}
