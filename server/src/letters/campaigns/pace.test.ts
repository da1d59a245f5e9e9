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
  it('sends no more than its rate, however often it is asked', () => {
    const speed = { ratePerSecond: 50, rampUs: 0 }
    for (const stepUs of [second / 100, second / 7, second]) {
      const sent = sentBy(speed, 10 * second, stepUs)
      expect(sent).toBeLessThanOrEqual(500)
      expect(sent).toBeGreaterThanOrEqual(490)
    }
  })

  it('grows evenly during the ramp: half of the rate on average', () => {
    const speed = { ratePerSecond: 100, rampUs: 10 * second }
    const ramp = sentBy(speed, 10 * second, second / 10)
    expect(ramp).toBeLessThanOrEqual(500)
    expect(ramp).toBeGreaterThanOrEqual(480)
    expect(sentBy(speed, second, second / 10)).toBeLessThanOrEqual(5)
    const after = sentBy(speed, 20 * second, second / 10) - ramp
    expect(after).toBeGreaterThanOrEqual(980)
  })

  it('goes as fast as it can without a rate', () => {
    expect(fillPace(startPace(noon), { ratePerSecond: 0, rampUs: 0 }, noon).tokens).toBe(
      Number.POSITIVE_INFINITY,
    )
  })

  it('makes up for a stall by one second at most', () => {
    expect(fillPace(startPace(noon), { ratePerSecond: 20, rampUs: 0 }, noon + 3_600 * second).tokens).toBe(20)
  })

  it('sends one in so many seconds when the rate is below one', () => {
    expect(sentBy({ ratePerSecond: 0.1, rampUs: 0 }, 60 * second, second)).toBe(6)
  })

  it('loses and gains nothing by a clock that steps back', () => {
    const speed = { ratePerSecond: 10, rampUs: 0 }
    const pace = fillPace(startPace(noon), speed, noon + second / 2)
    expect(fillPace(pace, speed, noon - second)).toEqual(pace)
  })
})
