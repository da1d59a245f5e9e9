import { describe, expect, it } from 'vitest'
import { createFailedAttempts } from './failed-attempts.ts'

function createCase(attemptsMax = 2) {
  const time = { ms: 0 }
  const attempts = createFailedAttempts({ attemptsMax, windowMs: 60_000, nowMs: () => time.ms })
  return { time, attempts }
}

describe('the limit of failed attempts', () => {
  it('an address is blocked after its attempts until a minute has passed, and others are not', () => {
    const { time, attempts } = createCase()
    for (let count = 0; count < 2; count++) attempts.note('203.0.113.1')
    expect(attempts.isBlocked('203.0.113.1')).toBe(true)
    expect(attempts.isBlocked('203.0.113.2')).toBe(false)
    time.ms = 59_999
    expect(attempts.isBlocked('203.0.113.1')).toBe(true)
    time.ms = 60_000
    expect(attempts.isBlocked('203.0.113.1')).toBe(false)
  })

  it.each([
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', true],
    ['2001:DB8:1:02::1', '2001:0db8:0001:2::9', true],
    ['2001:db8::1', '2001:db8:0:0:5::', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['::1', '::2', true],
    ['::ffff:203.0.113.1', '::ffff:203.0.113.2', false],
  ])('%s and %s share their attempts: %s', (first, second, isShared) => {
    const { attempts } = createCase(1)
    attempts.note(first)
    expect(attempts.isBlocked(second)).toBe(isShared)
  })

  it('an attacker with many addresses does not fill the memory', () => {
    const { attempts } = createCase(1)
    for (let count = 0; count < 20_000; count++) attempts.note(`10.0.${count >> 8}.${count & 255}`)
    expect(attempts.isBlocked('10.0.0.0')).toBe(false)
    expect(attempts.isBlocked(`10.0.${19_999 >> 8}.${19_999 & 255}`)).toBe(true)
  })
})
