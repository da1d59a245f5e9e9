import { describe, expect, it } from 'vitest'
import { noon, second } from '../../../test/make.ts'
import { fillPace, type Speed, spendPace, startPace } from './pace.ts'

/** Sends all that may be sent, every `stepUs`, and says how many were sent by then. */
function sentBy(speed: Speed, untilUs: number, stepUs: number): number {
  let pace = startPace(noon)
  let sent = 0
  for (let at = 0; at <= untilUs; at += stepUs) {
    pace = fillPace(pace, speed, noon + at)
    const count = Math.floor(pace.tokens)
    sent += count
    // As it comes back from the store.
    pace = JSON.parse(JSON.stringify(spendPace(pace, count)))
  }
  return sent
}

describe('the pace of a campaign', () => {
  it('a campaign never sends faster than its rate', () => {
    const speed = { ratePerSecond: 50, rampUs: 0 }
    for (const stepUs of [second / 100, second / 7, second]) {
      const sent = sentBy(speed, 10 * second, stepUs)
      expect(sent).toBeLessThanOrEqual(500)
      expect(sent).toBeGreaterThanOrEqual(490)
    }
  })

  it('during the ramp, a campaign sends at half of its rate on average', () => {
    const speed = { ratePerSecond: 100, rampUs: 10 * second }
    const ramp = sentBy(speed, 10 * second, second / 10)
    expect(ramp).toBeLessThanOrEqual(500)
    expect(ramp).toBeGreaterThanOrEqual(480)
    expect(sentBy(speed, second, second / 10)).toBeLessThanOrEqual(5)
    const after = sentBy(speed, 20 * second, second / 10) - ramp
    expect(after).toBeGreaterThanOrEqual(980)
  })

  it('a campaign without a rate is unlimited', () => {
    expect(fillPace(startPace(noon), { ratePerSecond: 0, rampUs: 0 }, noon).tokens).toBe(
      Number.POSITIVE_INFINITY,
    )
  })

  it('after a stall, a campaign catches up by at most one second', () => {
    expect(fillPace(startPace(noon), { ratePerSecond: 20, rampUs: 0 }, noon + 3_600 * second).tokens).toBe(20)
  })

  it('a rate below one sends one letter every few seconds', () => {
    expect(sentBy({ ratePerSecond: 0.1, rampUs: 0 }, 60 * second, second)).toBe(6)
  })

  it('a clock that moves back neither adds nor removes tokens, and the pace continues from there', () => {
    const speed = { ratePerSecond: 10, rampUs: 2 * second }
    const pace = fillPace(startPace(noon), speed, noon + second)
    const back = fillPace(pace, speed, noon - 3_600 * second)
    expect(back.tokens).toBe(pace.tokens)
    expect(fillPace(back, speed, noon - 3_599 * second).tokens).toBe(
      fillPace(pace, speed, noon + 2 * second).tokens,
    )
  })
})
