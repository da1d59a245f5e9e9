import { describe, expect, it } from 'vitest'
import { decodeBase64, decodeBase64Portably, toBase64, toBase64Portably } from './base64.ts'

const lengths = [0, 1, 2, 3, 255, 256, 0x2000, 0x2001, 300_000]

describe('base64', () => {
  it.each(lengths)('the built-in and the portable encoder agree for %d bytes', (length) => {
    const bytes = Uint8Array.from({ length }, (_, at) => (at * 31) % 256)
    const text = Buffer.from(bytes).toString('base64')
    expect(toBase64(bytes)).toBe(text)
    expect(toBase64Portably(bytes)).toBe(text)
    expect(decodeBase64(text)).toEqual(bytes)
    expect(decodeBase64Portably(text)).toEqual(bytes)
  })

  it('base64 encodes only the viewed part of a larger buffer, and decodes to a plain Uint8Array', () => {
    const part = Uint8Array.from([0, 1, 2, 3, 4]).subarray(1, 3)
    expect(toBase64(part)).toBe('AQI=')
    expect(Object.getPrototypeOf(decodeBase64('AQI='))).toBe(Uint8Array.prototype)
  })
})
