import { Type } from 'typebox'
import { formatDuration, parseDuration } from '../../../core/time/duration.ts'
import { KnownError } from '../../../errors.ts'

/** The schema of a duration in a request. */
export function duration(description: string) {
  return Type.String({
    maxLength: 32,
    description: `${description} Such as 300ms, 90s or 24h.`,
    examples: ['1m'],
  })
}

/** The schema of a duration in an answer. */
export function durationView(description: string) {
  return Type.String({ description: `${description} Such as 300ms, 1m0s or 24h0m0s.`, examples: ['1m0s'] })
}

/** Parses a duration of at least `usMin` microseconds. Errors name the field. */
export function parseDurationField(field: string, text: string, usMin: number): number {
  try {
    const durationUs = parseDuration(text)
    if (durationUs >= usMin) return durationUs
  } catch (error) {
    throw new KnownError('BAD_REQUEST', `${field}: ${error instanceof Error ? error.message : error}`, error)
  }
  throw new KnownError(
    'BAD_REQUEST',
    `${field}: ${text} is too short; the minimum is ${formatDuration(usMin)}`,
  )
}
