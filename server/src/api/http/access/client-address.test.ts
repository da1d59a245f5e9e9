import { describe, expect, it } from 'vitest'
import { isSecure, parseNetworks, readClientAddress } from './client-address.ts'

const proxies = parseNetworks(['10.0.0.0/8', '192.0.2.7', 'fd00::/8'])
if (proxies === undefined) throw new Error('the networks are valid')

const read = (remoteAddress: string, headers: Record<string, string> = {}) =>
  readClientAddress({ socket: { remoteAddress }, headers }, proxies)

describe('the address of the client', () => {
  it.each([
    [
      'a peer that is no trusted proxy cannot name another address',
      '203.0.113.9',
      { 'x-forwarded-for': '1.1.1.1' },
      '203.0.113.9',
    ],
    ['a trusted proxy names the client', '10.1.1.1', { 'x-forwarded-for': '203.0.113.9' }, '203.0.113.9'],
    [
      'an entry that the client invented is not used',
      '10.1.1.1',
      { 'x-forwarded-for': '1.1.1.1, 203.0.113.9' },
      '203.0.113.9',
    ],
    [
      'trusted proxies in a chain are skipped',
      '10.1.1.1',
      { 'x-forwarded-for': '203.0.113.9, 192.0.2.7, 10.2.2.2' },
      '203.0.113.9',
    ],
    [
      'Forwarded is read with quotes, brackets and ports',
      '10.1.1.1',
      { forwarded: 'for=1.1.1.1, for="[2001:db8::1]:4711";proto=https' },
      '2001:db8::1',
    ],
    [
      'an unreadable hop hides the ones before it',
      '10.1.1.1',
      { 'x-forwarded-for': '1.1.1.1, unknown, 10.2.2.2' },
      '10.2.2.2',
    ],
    ['an IPv4-mapped address is shown as IPv4', '::ffff:203.0.113.9', {}, '203.0.113.9'],
    [
      'an address with a port is shown without it',
      '10.1.1.1',
      { 'x-forwarded-for': '203.0.113.9:5000' },
      '203.0.113.9',
    ],
  ])('%s', (_, peer, headers, expected) => {
    expect(read(peer, headers as unknown as Record<string, string>)).toBe(expected)
  })

  it.each(['10.0.0.0/33', 'host', '10.0.0.0/8/8', '', '10.0.0.0/x'])('%j is no network', (entry) => {
    expect(parseNetworks([entry])).toBeUndefined()
  })

  it('the protocol is believed from trusted proxies only', () => {
    const request = (remoteAddress: string, headers: Record<string, string>) =>
      ({ socket: { remoteAddress }, headers }) as never
    const https = { 'x-forwarded-proto': 'https' }
    expect(isSecure(request('10.1.1.1', https), proxies)).toBe(true)
    expect(isSecure(request('203.0.113.9', https), proxies)).toBe(false)
    expect(isSecure(request('10.1.1.1', { forwarded: 'for=1.1.1.1;proto=https' }), proxies)).toBe(true)
    expect(isSecure(request('10.1.1.1', {}), proxies)).toBe(false)
  })
})
