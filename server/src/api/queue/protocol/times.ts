import { create } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { type Instant, instantMax, instantMin, usPerSecond } from '../../../core/time/instant.ts'

/** 0001-01-01T00:00:00Z, which stands for no time. */
const zeroSeconds = -62_135_596_800n

/** Returns null for no time and for the zero time. Clamps times that cannot be stored. */
export function toInstant(timestamp: Timestamp | undefined): Instant | null {
  if (timestamp === undefined) return null
  const { seconds, nanos } = timestamp
  if (seconds === zeroSeconds && nanos === 0) return null
  const micros = Number(seconds) * usPerSecond + Math.floor(nanos / 1_000)
  return Math.min(Math.max(micros, instantMin), instantMax)
}

export function toTimestamp(instant: Instant): Timestamp {
  const seconds = Math.floor(instant / usPerSecond)
  return create(TimestampSchema, {
    seconds: BigInt(seconds),
    nanos: (instant - seconds * usPerSecond) * 1_000,
  })
}

/** For fields that are always present in an answer. */
export function toTimestampOrZero(instant: Instant | null): Timestamp {
  return instant === null ? create(TimestampSchema, { seconds: zeroSeconds }) : toTimestamp(instant)
}

/** The JSON form: RFC 3339 in UTC with 0, 3 or 6 fraction digits. */
export function formatTime(instant: Instant): string {
  const text = new Date(Math.floor(instant / 1_000)).toISOString()
  const micros = ((instant % 1_000) + 1_000) % 1_000
  if (micros !== 0) return `${text.slice(0, -1)}${String(micros).padStart(3, '0')}Z`
  return text.endsWith('.000Z') ? `${text.slice(0, -5)}Z` : text
}
