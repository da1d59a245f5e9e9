/**
 * Times go in as a Date or as RFC 3339 text, and come out as the text that the server wrote: a Date
 * would lose the microseconds. `new Date(text)` reads all of them.
 */
export type Time = Date | string

/** 0001-01-01T00:00:00Z stands where there is no time. */
const zeroTime = /^0001-01-01T00:00:00(\.0+)?Z$/

export function toWireTime(time: Time): string {
  return typeof time === 'string' ? time : time.toISOString()
}

export function fromWireTime(text: string | undefined): string | null {
  return text === undefined || text === '' || zeroTime.test(text) ? null : text
}

/** As text that the server reads as a duration. */
export function toWireDuration(ms: number): string {
  return `${Math.round(ms)}ms`
}

/**
 * How long until a time of the server's, by the server's clock: a machine whose own clock is wrong must
 * not give leases up, or hold on to them. The Date of the answer has whole seconds only, so while our
 * clock agrees with it we believe ours. Browsers may hide it; then we believe ours as well.
 */
export function msUntil(serverTime: string, answerDate: string | null, nowMs: number): number {
  const dateMs = answerDate === null ? Number.NaN : Date.parse(answerDate)
  const isOurClockRight = Number.isNaN(dateMs) || (nowMs > dateMs - 250 && nowMs < dateMs + 1_250)
  return Date.parse(serverTime) - (isOurClockRight ? nowMs : dateMs + 500)
}
