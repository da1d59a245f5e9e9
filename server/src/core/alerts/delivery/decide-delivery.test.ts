import { describe, expect, it } from 'vitest'
import { decideDelivery, isPermanentStatus } from './decide-delivery.ts'

const second = 1_000_000
const hour = 3_600 * second
const queuedAt = 10 * hour
const rules = { giveUpUs: 24 * hour }
const failed = { isPermanent: false, retryAfter: null }

describe('a failed attempt to send a notification', () => {
  it.each([
    [0, 2],
    [2, 2],
    [4, 4],
    [64, 64],
    [299, 299],
    [301, 300],
    [7_200, 300],
  ])('at an age of %i s is repeated after %i s', (age, delay) => {
    const now = queuedAt + age * second
    const availableAt = now + delay * second
    expect(decideDelivery(failed, queuedAt, rules, 0.5, now)).toEqual({ kind: 'retry', availableAt })
  })

  it('the delay varies by a tenth, so that servers do not call at the same time', () => {
    const now = queuedAt + 100 * second
    const delays = [0, 0.999].map((chance) => {
      const decided = decideDelivery(failed, queuedAt, rules, chance, now)
      return decided.kind === 'retry' ? Math.round((decided.availableAt - now) / second) : null
    })
    expect(delays).toEqual([90, 110])
  })

  it('Retry-After postpones the next attempt by up to an hour, and never brings it forward', () => {
    const now = queuedAt + 60 * second
    const at = (retryAfter: string) => decideDelivery({ ...failed, retryAfter }, queuedAt, rules, 0.5, now)
    expect(at('600')).toEqual({ kind: 'retry', availableAt: now + 600 * second })
    expect(at('99999')).toEqual({ kind: 'retry', availableAt: now + hour })
    expect(at('1')).toEqual({ kind: 'retry', availableAt: now + 60 * second })
    expect(at('soon')).toEqual({ kind: 'retry', availableAt: now + 60 * second })
  })

  it('a permanent failure, and one at the end of the time, is given up', () => {
    expect(decideDelivery({ ...failed, isPermanent: true }, queuedAt, rules, 0.5, queuedAt)).toEqual({
      kind: 'dead',
    })
    const last = queuedAt + 24 * hour - 299 * second
    expect(decideDelivery(failed, queuedAt, rules, 0.5, last)).toEqual({ kind: 'dead' })
    expect(decideDelivery(failed, queuedAt, rules, 0.5, last - 2 * second)).toMatchObject({ kind: 'retry' })
  })

  it('a clock that was set back does not give up a notification', () => {
    expect(decideDelivery(failed, queuedAt, rules, 0.5, queuedAt - hour)).toMatchObject({ kind: 'retry' })
  })

  it.each([
    [399, false],
    [400, true],
    [404, true],
    [408, false],
    [425, false],
    [429, false],
    [499, true],
    [500, false],
    [503, false],
  ])('the status %i is permanent: %s', (status, isPermanent) => {
    expect(isPermanentStatus(status)).toBe(isPermanent)
  })
})
