import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { chooseRequestId, createXid } from './request-id.ts'

const idFor = (given?: string | string[]) =>
  chooseRequestId({ headers: { 'x-request-id': given } } as unknown as IncomingMessage)

describe('the id of a request', () => {
  it.each(['a', '7c9e6679-7425-40de-944b-e07fc1f90ae7', '01J9ZX', 'trace:abc/1+2=@x', 'a'.repeat(128)])(
    'the id of the client is used if it is safe: %s',
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
  ])('a new id is created instead of the unsafe id %j', (given) =>
    expect(idFor(given)).toMatch(/^[0-9a-v]{19}[0g]$/),
  )
})

describe('a new xid', () => {
  it('xids are unique and sort by time', () => {
    const ids = Array.from({ length: 1_000 }, (_, second) => createXid(second * 1_000))
    expect(new Set(ids).size).toBe(1_000)
    expect([...ids].sort()).toEqual(ids)
  })

  it('consecutive xids have the same machine and process, and a counter that grows by one', () => {
    const bitsOf = (id: string) =>
      [...id]
        .map((digit) => Number.parseInt(digit, 32).toString(2).padStart(5, '0'))
        .join('')
        .slice(0, 96)
    const second = 0x4d88e15b
    const [one, two] = [createXid(second * 1_000), createXid(second * 1_000 + 999)].map(bitsOf)
    const parts = (bits = '') =>
      [bits.slice(0, 32), bits.slice(56, 72), bits.slice(72)].map((part) => Number.parseInt(part, 2))
    const [seconds, pid, counter = 0] = parts(one)
    expect([seconds, pid]).toEqual([second, process.pid & 0xffff])
    expect(parts(two)).toEqual([second, pid, (counter + 1) & 0xffffff])
    expect(two?.slice(0, 72)).toBe(one?.slice(0, 72))
  })

  it('an xid begins with its second in base32hex', () => {
    expect(createXid(0x4d88e15b * 1_000).slice(0, 6)).toBe('9m4e2m')
    expect(createXid(0).slice(0, 6)).toBe('000000')
  })
})
