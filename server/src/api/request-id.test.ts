import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { newXid, requestIdOf } from './request-id.ts'

const idFor = (given?: string | string[]) =>
  requestIdOf({ headers: { 'x-request-id': given } } as unknown as IncomingMessage)

describe('the id of a request', () => {
  it.each(['a', '7c9e6679-7425-40de-944b-e07fc1f90ae7', '01J9ZX', 'trace:abc/1+2=@x', 'a'.repeat(128)])(
    'is the one the client gave: %s',
    (given) => expect(idFor(given)).toBe(given),
  )

  it.each([
    undefined,
    '',
    'a'.repeat(129),
    'a b',
    '<script>',
    'a\u0000b',
    'a"b',
    '-starts-with-a-dash',
    'naïve',
    ['a', 'b'],
  ])('is a new one when the client gave %j', (given) => expect(idFor(given)).toMatch(/^[0-9a-v]{19}[0g]$/))
})

describe('a new xid', () => {
  it('never repeats, and sorts by time', () => {
    const ids = Array.from({ length: 1_000 }, (_, second) => newXid(second * 1_000))
    expect(new Set(ids).size).toBe(1_000)
    expect([...ids].sort()).toEqual(ids)
  })

  it('begins with its second in base32hex', () => {
    expect(newXid(0x4d88e15b * 1_000).slice(0, 6)).toBe('9m4e2m')
    expect(newXid(0).slice(0, 6)).toBe('000000')
  })
})
