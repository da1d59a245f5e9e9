import { describe, expect, it } from 'vitest'
import { formatUptime } from './format-uptime.ts'

describe('formatUptime', () => {
  it.each([
    [0, '0 seconds'],
    [1, '1 second'],
    [65.9, '1 minute 5 seconds'],
    [3_600, '1 hour'],
    [3 * 86_400 + 4 * 3_600 + 59, '3 days 4 hours'],
  ])('an uptime of %d seconds is shown as %s', (seconds, text) => expect(formatUptime(seconds)).toBe(text))
})
