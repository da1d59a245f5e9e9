import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/**
 * True if an address or name always refers to this machine: 127.0.0.0/8, ::1, ::ffff:127.x.y.z, and
 * `localhost` with its sub-domains (RFC 6761).
 *
 * Other names are not resolved: the result could change between the check and its use.
 */
export function isLoopback(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  switch (isIP(bare)) {
    case 4:
      return loopback.check(bare, 'ipv4')
    case 6:
      // A BlockList checks an IPv4-mapped address against the IPv4 rules.
      return loopback.check(bare, 'ipv6')
    default: {
      const name = bare.toLowerCase().replace(/\.$/, '')
      return name === 'localhost' || name.endsWith('.localhost')
    }
  }
}

/** Returns the host of a `Host` header or an origin without the port, or null if it is invalid. */
export function parseHost(authority: string): string | null {
  const match = /^(?<host>\[[0-9a-f:.]+\]|[^:/?#@\s[\]]+)(?::\d{1,5})?$/i.exec(authority)
  return match?.groups?.host ?? null
}
