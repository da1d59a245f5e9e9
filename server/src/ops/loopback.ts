import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/**
 * Whether an address or name can only mean this machine: 127.0.0.0/8, ::1, ::ffff:127.x.y.z, and
 * `localhost` with the names below it (RFC 6761).
 *
 * No other name is resolved: what a name means can change between the check and its use.
 */
export function isLoopback(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  switch (isIP(bare)) {
    case 4:
      return loopback.check(bare, 'ipv4')
    case 6:
      // A BlockList compares an IPv4-mapped address with the IPv4 rules.
      return loopback.check(bare, 'ipv6')
    default: {
      const name = bare.toLowerCase().replace(/\.$/, '')
      return name === 'localhost' || name.endsWith('.localhost')
    }
  }
}

/** The host of a `Host` header or of an origin, without the port; null when it is not one. */
export function hostOf(authority: string): string | null {
  const match = /^(?<host>\[[0-9a-f:.]+\]|[^:/?#@\s[\]]+)(?::\d{1,5})?$/i.exec(authority)
  return match?.groups?.host ?? null
}
