import { describe, expect, it } from 'vitest'
import { computeMsUntil, fromWireTime, toWireTime } from './time.ts'

const nowMs = Date.parse('2026-01-01T00:00:00.700Z')
const inTenSeconds = '2026-01-01T00:00:10.700000Z'
const date = 'Thu, 01 Jan 2026 00:00:00 GMT'

describe('times on the wire', () => {
  it('a time keeps its microseconds because it stays text', () => {
    expect(toWireTime('2026-01-01T00:00:00.000001Z')).toBe('2026-01-01T00:00:00.000001Z')
    expect(toWireTime(new Date(nowMs))).toBe('2026-01-01T00:00:00.700Z')
    expect(fromWireTime('2026-01-01T00:00:00.000001Z')).toBe('2026-01-01T00:00:00.000001Z')
  })

  it('a missing, empty or zero time becomes null', () => {
    for (const none of [undefined, '', '0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z']) {
      expect(fromWireTime(none)).toBeNull()
    }
  })
})

describe('msUntil', () => {
  it('the local clock measures if it agrees with the Date header, or if there is no usable header', () => {
    expect(computeMsUntil(inTenSeconds, date, nowMs)).toBe(10_000)
    expect(computeMsUntil(inTenSeconds, null, nowMs)).toBe(10_000)
    expect(computeMsUntil(inTenSeconds, 'nonsense', nowMs)).toBe(10_000)
  })

  it.each([3_600_000, -3_600_000, 5_000, -5_000])(
    'the Date header measures if the local clock is off by %d ms',
    (offMs) => {
      const ms = computeMsUntil(inTenSeconds, date, nowMs + offMs)
      expect(ms).toBeGreaterThanOrEqual(9_500)
      expect(ms).toBeLessThanOrEqual(10_500)
    },
  )
})
