import { describe, expect, it } from 'vitest'
import { createAddressChecker, findAllowedProblem, readUrlHost } from './address-rules.ts'

const strict = createAddressChecker({ isLoopbackAllowed: false, allowed: [] })
const protectedMode = createAddressChecker({ isLoopbackAllowed: true, allowed: [] })

/** The address of a URL, in the form in which a connection uses it. */
const hostOf = (url: string): string => readUrlHost(new URL(url))

describe('addresses of receivers', () => {
  it.each([
    ['8.8.8.8'],
    ['1.1.1.1'],
    ['172.15.255.255'],
    ['172.32.0.1'],
    ['100.63.255.255'],
    ['100.128.0.1'],
    ['169.253.1.1'],
    ['192.167.1.1'],
    ['223.255.255.255'],
    ['2606:4700:4700::1111'],
    ['2a00:1450:4001:82a::200e'],
    ['::ffff:8.8.8.8'],
  ])('a push may go to the public address %s', (address) => {
    expect(strict.findAddressProblem(address)).toBeUndefined()
  })

  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['::1', 'loopback'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['::', 'unspecified'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['fd00:ec2::254', 'private'],
    ['fc00::1', 'private'],
    ['fec0::1', 'private'],
    ['169.254.169.254', 'link-local'],
    ['169.254.170.2', 'link-local'],
    ['fe80::1', 'link-local'],
    ['100.64.0.1', 'shared'],
    ['100.100.100.200', 'shared'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.250', 'multicast'],
    ['ff02::1', 'multicast'],
    ['168.63.129.16', 'cloud'],
    ['192.0.0.192', 'reserved'],
    ['192.0.2.1', 'reserved'],
    ['198.18.0.1', 'reserved'],
    ['198.19.255.255', 'reserved'],
    ['198.51.100.1', 'reserved'],
    ['203.0.113.1', 'reserved'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'reserved'],
    ['2001:db8::1', 'reserved'],
    ['3fff::1', 'reserved'],
    ['100::1', 'reserved'],
    ['5f00::1', 'reserved'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['::ffff:10.0.0.1', 'private'],
    ['::ffff:169.254.169.254', 'link-local'],
    ['::127.0.0.1', 'stands for an IPv4'],
    ['64:ff9b::127.0.0.1', 'stands for an IPv4'],
    ['64:ff9b::8.8.8.8', 'stands for an IPv4'],
    ['64:ff9b:1::a00:1', 'stands for an IPv4'],
    ['2002:7f00:1::', 'stands for an IPv4'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'stands for an IPv4'],
    ['4000::1', 'not a public address'],
    ['fe80::1%eth0', 'link-local'],
    ['not an address', 'not an IP address'],
  ])('a push must not go to %s, which is %s', (address, kind) => {
    expect(strict.findAddressProblem(address)).toContain(kind)
  })

  it.each([
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://[::ffff:127.0.0.1]/',
    'http://[0:0:0:0:0:ffff:7f00:0001]/',
    'http://[::]/',
    'http://0/',
    'http://①②⑦.0.0.1/',
  ])('the host of %s is judged by the address that it means', (url) => {
    expect(strict.findAddressProblem(hostOf(url))).toBeTypeOf('string')
  })

  it('protected mode allows loopback and nothing else', () => {
    expect(protectedMode.findAddressProblem('127.0.0.1')).toBeUndefined()
    expect(protectedMode.findAddressProblem('::1')).toBeUndefined()
    expect(protectedMode.findAddressProblem('::ffff:127.0.0.1')).toBeUndefined()
    expect(protectedMode.findAddressProblem('10.0.0.1')).toBeTypeOf('string')
    expect(protectedMode.findAddressProblem('0.0.0.0')).toBeTypeOf('string')
  })

  it('an allowed range opens its addresses, also in the IPv4-mapped form, and no others', () => {
    const checker = createAddressChecker({
      isLoopbackAllowed: false,
      allowed: ['10.1.0.0/16', '192.168.7.7', 'fd12::/16'],
    })
    expect(checker.findAddressProblem('10.1.2.3')).toBeUndefined()
    expect(checker.findAddressProblem('::ffff:10.1.2.3')).toBeUndefined()
    expect(checker.findAddressProblem('10.2.0.1')).toBeTypeOf('string')
    expect(checker.findAddressProblem('192.168.7.7')).toBeUndefined()
    expect(checker.findAddressProblem('192.168.7.8')).toBeTypeOf('string')
    expect(checker.findAddressProblem('fd12::9')).toBeUndefined()
    expect(checker.findAddressProblem('fd13::9')).toBeTypeOf('string')
    expect(checker.findAddressProblem('127.0.0.1')).toBeTypeOf('string')
  })

  it('an allowed name is a whole name, or a domain with all names below it', () => {
    const { isHostAllowed } = createAddressChecker({
      isLoopbackAllowed: false,
      allowed: ['hooks.internal', '*.corp.example'],
    })
    expect(isHostAllowed('hooks.internal')).toBe(true)
    expect(isHostAllowed('HOOKS.internal.')).toBe(true)
    expect(isHostAllowed('a.hooks.internal')).toBe(false)
    expect(isHostAllowed('evilhooks.internal')).toBe(false)
    expect(isHostAllowed('a.b.corp.example')).toBe(true)
    expect(isHostAllowed('corp.example')).toBe(false)
    expect(isHostAllowed('evilcorp.example')).toBe(false)
  })

  it.each([
    '',
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0.0/-1',
    '*',
    '*.*.a',
    'a b',
    'http://a',
    'fe80::1%eth0',
    '1.2.3',
  ])('%j is not an allowed host or range', (entry) => {
    expect(findAllowedProblem(entry)).toContain('neither a host name')
    expect(() => createAddressChecker({ isLoopbackAllowed: false, allowed: [entry] })).toThrow(RangeError)
  })
})
