import { describe, expect, it } from 'vitest'
import { hour, noon, second } from '../../../../test/make.ts'
import { formatHttpDate } from '../../time/http-date.ts'
import { parseRetryAfter } from './retry-after.ts'

describe('Retry-After', () => {
  it('seconds and HTTP dates are instants, up to the longest delay', () => {
    expect(parseRetryAfter('120', noon, hour)).toBe(noon + 120 * second)
    expect(parseRetryAfter(' 5 ', noon, hour)).toBe(noon + 5 * second)
    expect(parseRetryAfter(formatHttpDate(noon + 90 * second), noon, hour)).toBe(noon + 90 * second)
    expect(parseRetryAfter('999999999999', noon, hour)).toBe(noon + hour)
    expect(parseRetryAfter(formatHttpDate(noon + 48 * hour), noon, hour)).toBe(noon + hour)
  })

  it.each([null, '', '0', '-1', '1.5', 'soon', formatHttpDate(noon - second)])(
    '%j asks for no delay',
    (text) => {
      expect(parseRetryAfter(text, noon, hour)).toBeUndefined()
    },
  )
})
