import { normaliseDuration, parseFineDuration } from '../../../core/time/duration.ts'
import { usPerMs } from '../../../core/time/instant.ts'
import { createBadRequest } from '../protocol/fault.ts'

const usMin = 10 * usPerMs
const usMax = 15 * 60 * 1_000 * usPerMs

/**
 * Returns microseconds, with a fraction for nanoseconds: a timeout of 1 ns must not look like no timeout.
 * Returns 0 without a timeout.
 */
export function parseRequestTimeout(text: string): number {
  // Almost all clients send the same timeout with every request.
  if (text === lastText) return lastUs
  if (text === '') return 0
  try {
    lastUs = parseFineDuration(text)
    lastText = text
    return lastUs
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw createBadRequest(`request timeout is invalid; ${why} - expected format: 900ms, 5m or 15m`)
  }
}

let lastText = ''
let lastUs = 0

export function checkTimeoutGiven(timeoutUs: number): void {
  if (timeoutUs === 0)
    throw createBadRequest("request timeout is required; '5m' is recommended, 15m is the maximum")
}

export function checkTimeoutMin(timeoutUs: number, text: string): void {
  if (timeoutUs > usMin) return
  throw createBadRequest(
    `request timeout is invalid; minimum timeout is '10ms' but '${normaliseDuration(text)}' was requested`,
  )
}

/** The message quotes the normalised `text`. `isIncluded`: whether the maximum itself is allowed. */
export function checkTimeoutMax(timeoutUs: number, text: string, isIncluded: boolean): void {
  if (isIncluded ? timeoutUs <= usMax : timeoutUs < usMax) return
  throw createBadRequest(
    `request timeout is invalid; maximum timeout is '15m' but '${normaliseDuration(text)}' was requested`,
  )
}

export function toMs(timeoutUs: number): number {
  return Math.ceil(timeoutUs / usPerMs)
}
