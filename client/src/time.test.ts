import { describe, expect, it } from 'vitest'
import { fromWireTime, msUntil, toWireTime } from './time.ts'

const nowMs = Date.parse('2026-01-01T00:00:00.700Z')
const inTenSeconds = '2026-01-01T00:00:10.700000Z'
const date = 'Thu, 01 Jan 2026 00:00:00 GMT'

describe('times', () => {
  it('keep their microseconds as text', () => {
    expect(toWireTime('2026-01-01T00:00:00.000001Z')).toBe('2026-01-01T00:00:00.000001Z')
    expect(toWireTime(new Date(nowMs))).toBe('2026-01-01T00:00:00.700Z')
    expect(fromWireTime('2026-01-01T00:00:00.000001Z')).toBe('2026-01-01T00:00:00.000001Z')
  })

  it('are null where there is none', () => {
    for (const none of [undefined, '', '0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z']) {
      expect(fromWireTime(none)).toBeNull()
    }
  })
})

describe('the time until a time of the server', () => {
  it('goes by our clock while that agrees with the server', () => {
    expect(msUntil(inTenSeconds, date, nowMs)).toBe(10_000)
    expect(msUntil(inTenSeconds, null, nowMs)).toBe(10_000)
    expect(msUntil(inTenSeconds, 'nonsense', nowMs)).toBe(10_000)
  })

  it.each([3_600_000, -3_600_000, 5_000, -5_000])(
    'goes by the server when our clock is %d ms off',
    (offMs) => {
      const ms = msUntil(inTenSeconds, date, nowMs + offMs)
      expect(ms).toBeGreaterThanOrEqual(9_500)
      expect(ms).toBeLessThanOrEqual(10_500)
    },
  )
})
