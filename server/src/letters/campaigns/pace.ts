/**
 * The speed of a campaign: a token bucket, one token per letter, that fills at the rate of the campaign.
 * During the ramp, the rate grows linearly from zero. The bucket is stored in the campaign document, so a
 * restart or another server continues at the same speed.
 */
import { type Instant, usPerSecond } from '../../core/time/instant.ts'
import type { CampaignSpec } from '../letters.ts'

export type Pace = Readonly<{
  /** When the ramp started. */
  since: Instant
  /** When the bucket was last filled; `tokens` is its content at that time. */
  at: Instant
  tokens: number
}>
export type Speed = Pick<CampaignSpec, 'ratePerSecond' | 'rampUs'>

export function startPace(now: Instant): Pace {
  return { since: now, at: now, tokens: 0 }
}

/** Fills the bucket up to now. It holds at most one second's worth of tokens, so a pause causes no burst. */
export function fillPace(pace: Pace, speed: Speed, now: Instant): Pace {
  if (speed.ratePerSecond === 0) return { ...pace, at: now, tokens: Number.POSITIVE_INFINITY }
  if (now < pace.at) return moveBack(pace, now)
  const gained = integrateRate(speed, now - pace.since) - integrateRate(speed, pace.at - pace.since)
  const tokensMax = Math.max(computeRate(speed, now - pace.since), 1)
  return { ...pace, at: now, tokens: Math.min(pace.tokens + gained, tokensMax) }
}

/**
 * The pace after the clock was set back: no tokens are added or removed, and the bucket fills again from now
 * on. Otherwise the campaign would stand still until the clock shows the old time again.
 */
function moveBack(pace: Pace, now: Instant): Pace {
  return { ...pace, since: pace.since - (pace.at - now), at: now }
}

export function spendPace(pace: Pace, count: number): Pace {
  return { ...pace, tokens: Number.isFinite(pace.tokens) ? pace.tokens - count : 0 }
}

/** Letters per second at a time after the start. */
export function computeRate({ ratePerSecond, rampUs }: Speed, elapsedUs: number): number {
  return rampUs === 0 ? ratePerSecond : ratePerSecond * Math.min(Math.max(elapsedUs, 0) / rampUs, 1)
}

/** Number of letters that the rate allows from the start until then: the integral of the rate. */
function integrateRate({ ratePerSecond, rampUs }: Speed, elapsedUs: number): number {
  const elapsed = Math.max(elapsedUs, 0) / usPerSecond
  const ramp = rampUs / usPerSecond
  if (elapsed >= ramp) return ratePerSecond * (elapsed - ramp / 2)
  return (ratePerSecond * elapsed * elapsed) / (2 * ramp)
}
