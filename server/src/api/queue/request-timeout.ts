import { formatDuration, parseDuration } from '../../core/duration.ts'
import { usPerMs } from '../../core/instant.ts'
import { invalid } from './fault.ts'

const usMin = 10 * usPerMs
const usMax = 15 * 60 * 1_000 * usPerMs

/** In microseconds; 0 when there is none. */
export function parseRequestTimeout(text: string): number {
  // What nearly all clients send, again and again.
  if (text === lastText) return lastUs
  if (text === '') return 0
  try {
    lastUs = parseDuration(text)
    lastText = text
    return lastUs
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw invalid(`request timeout is invalid; ${why} - expected format: 900ms, 5m or 15m`)
  }
}

let lastText = ''
let lastUs = 0

export function checkTimeoutGiven(timeoutUs: number): void {
  if (timeoutUs === 0) throw invalid("request timeout is required; '5m' is recommended, 15m is the maximum")
}

export function checkTimeoutMin(timeoutUs: number): void {
  if (timeoutUs > usMin) return
  throw invalid(
    `request timeout is invalid; minimum timeout is '10ms' but '${formatDuration(timeoutUs)}' was requested`,
  )
}

/** `isIncluded`: whether the maximum itself is allowed. */
export function checkTimeoutMax(timeoutUs: number, isIncluded: boolean): void {
  if (isIncluded ? timeoutUs <= usMax : timeoutUs < usMax) return
  throw invalid(
    `request timeout is invalid; maximum timeout is '15m' but '${formatDuration(timeoutUs)}' was requested`,
  )
}

export function toMs(timeoutUs: number): number {
  return Math.ceil(timeoutUs / usPerMs)
}
