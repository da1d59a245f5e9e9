import { describe, expect, it } from 'vitest'
import { minute, noon, second } from '../../../../test/make.ts'
import {
  type BreakerRules,
  type BreakerState,
  cancelProbe,
  closedBreaker,
  countAttempt,
  endProbe,
  findReasonToOpen,
  newBreakerCounts,
  openBreaker,
  probeAt,
  startProbe,
} from './breaker.ts'

const rules: BreakerRules = {
  failuresMax: 5,
  failureRatioMax: 0.5,
  requestsMin: 10,
  windowUs: minute,
  holdUs: 10 * second,
  holdUsMax: 60 * second,
  probeUs: 33 * second,
}

function countAll(outcomes: string, stepUs = second) {
  let counts = newBreakerCounts(noon)
  for (const [index, outcome] of [...outcomes].entries()) {
    counts = countAttempt(counts, outcome === '+', rules, noon + index * stepUs)
  }
  return findReasonToOpen(counts, rules)
}

const opened = openBreaker(closedBreaker, 'because', rules, noon)

describe('the circuit breaker of a consumer', () => {
  it('a breaker opens after too many failures in a row', () => {
    expect(countAll('----')).toBeUndefined()
    expect(countAll('-----')).toBe('5 attempts in a row failed')
    expect(countAll('----+----')).toBeUndefined()
  })

  it('a breaker opens when too large a share of a window failed', () => {
    expect(countAll('+-+-+-+-+')).toBeUndefined()
    expect(countAll('+-+-+-+-+-')).toBe('5 of the last 10 attempts failed')
    expect(countAll('++-++-++-++-++-++-')).toBeUndefined()
    expect(countAll('+-+-+-+-+-', 30 * second)).toBeUndefined()
  })

  it('a breaker never opens if it is switched off', () => {
    let counts = newBreakerCounts(noon)
    for (let count = 0; count < 1_000; count++) counts = countAttempt(counts, false, rules, noon)
    expect(findReasonToOpen(counts, { ...rules, failuresMax: 0 })).toBeUndefined()
  })

  it('an open breaker holds the jobs, then lets one probe through at a time', () => {
    expect(probeAt(closedBreaker)).toBeNull()
    expect(startProbe(closedBreaker, rules, noon)).toBeUndefined()
    expect(startProbe(opened, rules, noon + 10 * second - 1)).toBeUndefined()
    const probing = startProbe(opened, rules, noon + 10 * second) as BreakerState
    expect(probing).toMatchObject({ state: 'half-open', openedAt: noon, probeUntil: noon + 43 * second })
    expect(startProbe(probing, rules, noon + 43 * second - 1)).toBeUndefined()
    expect(startProbe(probing, rules, noon + 43 * second)).toMatchObject({ state: 'half-open' })
  })

  it('a breaker closes when the probe is delivered, and holds twice as long after each failed probe, up to the bound', () => {
    let state = opened
    const holds: number[] = []
    let now = noon
    for (let round = 0; round < 5; round++) {
      now = probeAt(state) ?? now
      state = endProbe(startProbe(state, rules, now) as BreakerState, false, rules, now)
      holds.push(((probeAt(state) ?? now) - now) / second)
    }
    expect(holds).toEqual([20, 40, 60, 60, 60])
    expect(state).toMatchObject({ state: 'open', openedAt: noon, failedProbes: 5, reason: 'because' })
    const probing = startProbe(state, rules, probeAt(state) ?? now) as BreakerState
    expect(endProbe(probing, true, rules, now)).toEqual(closedBreaker)
  })

  it('a probe without a job can start again at once', () => {
    const probing = startProbe(opened, rules, noon + 10 * second) as BreakerState
    const cancelled = cancelProbe(probing, noon + 11 * second)
    expect(cancelled).toMatchObject({ state: 'open', failedProbes: 0 })
    expect(startProbe(cancelled, rules, noon + 11 * second)).toBeDefined()
  })

  it('the end of a probe that is over, and the opening of an open breaker, change nothing', () => {
    expect(endProbe(opened, true, rules, noon)).toBe(opened)
    expect(endProbe(closedBreaker, false, rules, noon)).toBe(closedBreaker)
    expect(openBreaker(opened, 'other', rules, noon)).toBe(opened)
    expect(cancelProbe(closedBreaker, noon)).toBe(closedBreaker)
  })
})
