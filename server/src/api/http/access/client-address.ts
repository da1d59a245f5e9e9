import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** The addresses of the proxies whose headers about the client are believed. */
export type TrustedProxies = Readonly<{ check(address: string): boolean }>

export const noProxies: TrustedProxies = { check: () => false }

/** Undefined: an entry is no address and no CIDR block. */
export function parseNetworks(entries: readonly string[]): TrustedProxies | undefined {
  const blocks = new BlockList()
  for (const entry of entries) {
    const [address = '', bits, ...rest] = entry.split('/')
    const version = isIP(address)
    const bitsMax = version === 4 ? 32 : 128
    const length = bits === undefined ? bitsMax : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
    if (version === 0 || rest.length > 0 || length < 0 || length > bitsMax) return undefined
    blocks.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6')
  }
  return {
    check: (address) => {
      const version = isIP(address)
      return version !== 0 && blocks.check(address, version === 4 ? 'ipv4' : 'ipv6')
    },
  }
}

/** A longer list of proxies is not read: the entries that matter are at its end. */
const hopsMax = 20

/**
 * The address of the client: the nearest hop that is not a trusted proxy. `Forwarded` and `X-Forwarded-For`
 * are read from the end, because each trusted proxy appends the address that it saw, and everything before
 * can be invented by the client. They are ignored unless the peer of the connection is a trusted proxy.
 */
export function readClientAddress(
  { socket, headers }: Pick<IncomingMessage, 'headers'> & { socket: { remoteAddress?: string | undefined } },
  proxies: TrustedProxies = noProxies,
): string {
  const peer = normalize(socket.remoteAddress ?? '')
  if (proxies === noProxies || !proxies.check(peer)) return peer
  let client = peer
  for (const hop of readHops(headers).toReversed().slice(0, hopsMax)) {
    const address = normalize(hop)
    // An unreadable hop hides the ones before it: the last readable address is the best answer.
    if (isIP(address) === 0) return client
    client = address
    if (!proxies.check(address)) return client
  }
  return client
}

/** Whether the client used TLS, up to this server or up to a trusted proxy. */
export function isSecure(request: IncomingMessage, proxies: TrustedProxies): boolean {
  if ((request.socket as { encrypted?: boolean }).encrypted === true) return true
  if (proxies === noProxies || !proxies.check(normalize(request.socket.remoteAddress ?? ''))) return false
  const { forwarded, 'x-forwarded-proto': protocol } = request.headers
  if (forwarded !== undefined) return /(?:^|[;,\s])proto="?https"?(?:$|[;,\s])/i.test(forwarded)
  return typeof protocol === 'string' && protocol.split(',').at(-1)?.trim().toLowerCase() === 'https'
}

function readHops(headers: IncomingMessage['headers']): readonly string[] {
  const { forwarded, 'x-forwarded-for': list } = headers
  if (forwarded !== undefined) {
    return forwarded.split(',').map((hop) => /(?:^|;)\s*for="?([^";]+)"?/i.exec(hop)?.[1] ?? '')
  }
  return typeof list === 'string' ? list.split(',') : []
}

/** Without white space, brackets, port, zone and the prefix of IPv4-mapped addresses. */
function normalize(text: string): string {
  let address = text.trim()
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(address) ?? []
  if (bracketed !== undefined) address = bracketed
  else if (/^[\d.]+:\d+$/.test(address)) address = address.slice(0, address.indexOf(':'))
  address = address.replace(/%.*$/, '')
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice('::ffff:'.length) : address
}
