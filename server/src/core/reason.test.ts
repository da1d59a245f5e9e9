import { describe, expect, it } from 'vitest'
import { reasonSlug } from './reason.ts'

describe('the reason of a failure as one word', () => {
  it.each([
    ['network timeout', 'network'],
    ['HTTP 503: upstream', 'http_503'],
    ['Soulseek error: peer', 'soulseek_error'],
    ['[Errno 111] x', 'errno'],
    [':x', 'unknown'],
    ['!!!', 'unknown'],
    ['連線逾時', 'unknown'],
    ['', 'unknown'],
    ['   ', 'unknown'],
    [null, 'unknown'],
    ['  Timeout  after 3 s', 'timeout'],
    ['a:b:c', 'a'],
  ])('of %j is %s', (message, slug) => {
    expect(reasonSlug(message)).toBe(slug)
  })

  it('leaves long numbers and ids out: a reason of its own for every letter is none', () => {
    expect(reasonSlug('order 83412: gone')).toBe('order')
    expect(reasonSlug('order 83413: gone')).toBe('order')
    expect(reasonSlug('order 8f14e45f-ceea-467f-a83d-0123456789ab: gone')).toBe('order')
    expect(reasonSlug('token a1b2c3d4e5f6a7b8: refused')).toBe('token')
  })

  it('is bounded, however long the message is', () => {
    expect(reasonSlug('x'.repeat(1_000_000)).length).toBe(64)
    expect(reasonSlug('- '.repeat(1_000_000))).toBe('unknown')
  })
})
