/**
 * Where a push may go. The URL of a consumer comes from a client, so without rules a push could reach
 * services that only this machine or its network can reach, such as the metadata service of a cloud.
 *
 * The rules judge addresses, not names: a name can have another address a moment later (DNS rebinding).
 * connect.ts applies them to each address before the connection and again to the connected one.
 */
import { BlockList, isIP } from 'node:net'
import type { AddressRules } from './sender.ts'

export type AddressChecker = Readonly<{
  /** Whether the name itself is allowed, with any address. */
  isHostAllowed(host: string): boolean
  /** Why no push may go to this address; undefined: it may. */
  findAddressProblem(address: string): string | undefined
}>

type Family = 'ipv4' | 'ipv6'

/** Special-purpose addresses (IANA registries, RFC 6890) and the addresses of cloud services for machines. */
const forbiddenRanges: readonly (readonly [kind: string, ranges: readonly string[]])[] = [
  ['a loopback address', ['127.0.0.0/8', '::1/128']],
  ['an unspecified address', ['0.0.0.0/8', '::/128']],
  ['a private address', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fec0::/10']],
  ['a link-local address', ['169.254.0.0/16', 'fe80::/10']],
  ['a shared address of a carrier', ['100.64.0.0/10']],
  ['a multicast address', ['224.0.0.0/4', 'ff00::/8']],
  ['an address of a cloud for its machines', ['168.63.129.16/32']],
  [
    'an address that stands for an IPv4 address',
    ['::/96', '64:ff9b::/96', '64:ff9b:1::/48', '2001::/32', '2002::/16'],
  ],
  [
    'a reserved address',
    [
      '192.0.0.0/24',
      '192.0.2.0/24',
      '192.88.99.0/24',
      '198.18.0.0/15',
      '198.51.100.0/24',
      '203.0.113.0/24',
      '240.0.0.0/4',
      '100::/64',
      '2001::/23',
      '2001:db8::/32',
      '3fff::/20',
      '5f00::/16',
    ],
  ],
]

const forbiddenLists = forbiddenRanges.map(([kind, ranges]) => ({ kind, list: createList(ranges) }))
const loopback = createList(['127.0.0.0/8', '::1/128'])
/** Every IPv4 address, because a BlockList compares it as IPv4-mapped IPv6 address. */
const ipv4 = createList(['::ffff:0:0/96'])
/** All other IPv6 addresses are not assigned, or not for the public. */
const globalUnicast = createList(['2000::/3'])

const hostPattern =
  /^(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*\.?$/i

/** Throws a RangeError if an entry of `allowed` is malformed: check settings when they are read. */
export function createAddressChecker(rules: AddressRules): AddressChecker {
  const allowedHosts: string[] = []
  const allowedRanges: string[] = []
  for (const entry of rules.allowed) {
    const problem = findAllowedProblem(entry)
    if (problem !== undefined) throw new RangeError(problem)
    if (parseRange(entry) === undefined) allowedHosts.push(normaliseHost(entry))
    else allowedRanges.push(entry)
  }
  const allowed = createList(allowedRanges)
  return {
    isHostAllowed: (host) => allowedHosts.some((pattern) => matchesHost(pattern, normaliseHost(host))),
    findAddressProblem: (address) => {
      const family = readFamily(address)
      if (family === undefined) return `${address} is not an IP address`
      if (allowed.check(address, family)) return undefined
      if (rules.isLoopbackAllowed && loopback.check(address, family)) return undefined
      const kind = findForbiddenKind(address, family)
      return kind === undefined ? undefined : `${address} is ${kind}`
    },
  }
}

/** Why a text is neither a host name nor a range of addresses; undefined: it is one. */
export function findAllowedProblem(entry: string): string | undefined {
  if (parseRange(entry) !== undefined) return undefined
  if (!entry.includes('/') && !/^[\d.]+$/.test(entry) && hostPattern.test(entry)) return undefined
  return `"${entry}" is neither a host name, such as hooks.internal or *.internal, nor a range of addresses, such as 10.1.0.0/16`
}

/** The host of a URL without the brackets of an IPv6 address. */
export function readUrlHost(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
}

function findForbiddenKind(address: string, family: Family): string | undefined {
  // The IPv4 ranges also cover IPv4-mapped IPv6 addresses: connecting to one connects to the IPv4 address.
  const found = forbiddenLists.find(({ list }) => list.check(address, family))
  if (found !== undefined) return found.kind
  const isPublic = ipv4.check(address, family) || globalUnicast.check(address, family)
  return isPublic ? undefined : 'not a public address'
}

type Range = Readonly<{ address: string; family: Family; bits: number }>

function parseRange(text: string): Range | undefined {
  const [address = '', bitsText, ...rest] = text.split('/')
  const family = readFamily(address)
  if (family === undefined || rest.length > 0 || address.includes('%')) return undefined
  const bitsMax = family === 'ipv4' ? 32 : 128
  if (bitsText === undefined) return { address, family, bits: bitsMax }
  const bits = Number(bitsText)
  return /^\d{1,3}$/.test(bitsText) && bits <= bitsMax ? { address, family, bits } : undefined
}

function createList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of ranges) {
    const range = parseRange(text)
    if (range !== undefined) list.addSubnet(range.address, range.bits, range.family)
  }
  return list
}

function readFamily(address: string): Family | undefined {
  switch (isIP(address)) {
    case 4:
      return 'ipv4'
    case 6:
      return 'ipv6'
    default:
      return undefined
  }
}

function normaliseHost(host: string): string {
  return host.toLowerCase().replace(/\.$/, '')
}

function matchesHost(pattern: string, host: string): boolean {
  return pattern.startsWith('*.')
    ? host.endsWith(pattern.slice(1)) && host.length >= pattern.length
    : host === pattern
}
