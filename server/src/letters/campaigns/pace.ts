/**
 * How fast a campaign sends. A bucket of tokens, one per letter, that fills at the rate of the campaign; the rate grows
 * evenly from nothing during the ramp. All of it stands in the campaign's document: after a restart, or on
 * another server, it goes on as if nothing had been.
 */
import { type Instant, usPerSecond } from '../../core/instant.ts'
import type { CampaignSpec } from '../letters.ts'

export type Pace = Readonly<{
  /** When the ramp began. */
  since: Instant
  /** When the bucket was last filled, and what was in it then. */
  at: Instant
  tokens: number
}>
export type Speed = Pick<CampaignSpec, 'ratePerSecond' | 'rampUs'>

export function startPace(now: Instant): Pace {
  return { since: now, at: now, tokens: 0 }
}

/** What may be sent now. A stall is made up for by one second's worth at most: no flood after a pause. */
export function fillPace(pace: Pace, speed: Speed, now: Instant): Pace {
  if (speed.ratePerSecond === 0) return { ...pace, at: now, tokens: Number.POSITIVE_INFINITY }
  // A clock that steps back gives nothing, and takes nothing away.
  if (now <= pace.at) return pace
  const gained = sentUntil(speed, now - pace.since) - sentUntil(speed, pace.at - pace.since)
  const room = Math.max(rateAt(speed, now - pace.since), 1)
  return { ...pace, at: now, tokens: Math.min(pace.tokens + gained, room) }
}

export function spendPace(pace: Pace, count: number): Pace {
  return { ...pace, tokens: Number.isFinite(pace.tokens) ? pace.tokens - count : 0 }
}

/** Letters a second, so long after the start. */
export function rateAt({ ratePerSecond, rampUs }: Speed, elapsedUs: number): number {
  return rampUs === 0 ? ratePerSecond : ratePerSecond * Math.min(Math.max(elapsedUs, 0) / rampUs, 1)
}

/** How many would have been sent so long after the start: the area under the rate. */
function sentUntil({ ratePerSecond, rampUs }: Speed, elapsedUs: number): number {
  const elapsed = Math.max(elapsedUs, 0) / usPerSecond
  const ramp = rampUs / usPerSecond
  if (elapsed >= ramp) return ratePerSecond * (elapsed - ramp / 2)
  return (ratePerSecond * elapsed * elapsed) / (2 * ramp)
}
