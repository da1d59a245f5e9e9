/**
 * The client accepts times as a Date or as RFC 3339 text, and returns them as the server's text, because a
 * Date would lose the microseconds. `new Date(text)` parses every returned time.
 */
export type Time = Date | string

/** The Queue API writes 0001-01-01T00:00:00Z for a missing time. */
const zeroTime = /^0001-01-01T00:00:00(\.0+)?Z$/

export function toWireTime(time: Time): string {
  return typeof time === 'string' ? time : time.toISOString()
}

export function fromWireTime(text: string | undefined): string | null {
  return text === undefined || text === '' || zeroTime.test(text) ? null : text
}

/** Formats milliseconds as a duration that the server can parse. */
export function toWireDuration(ms: number): string {
  return `${Math.round(ms)}ms`
}

/**
 * Milliseconds until `serverTime`, measured by the server's clock: a client whose own clock is wrong would
 * otherwise drop valid leases or keep ended ones. The Date header has a resolution of one second, so the
 * local clock is used as long as it agrees with the header, and also if a browser hides the header.
 */
export function computeMsUntil(serverTime: string, answerDate: string | null, nowMs: number): number {
  const dateMs = answerDate === null ? Number.NaN : Date.parse(answerDate)
  const isLocalClockRight = Number.isNaN(dateMs) || (nowMs > dateMs - 250 && nowMs < dateMs + 1_250)
  return Date.parse(serverTime) - (isLocalClockRight ? nowMs : dateMs + 500)
}
