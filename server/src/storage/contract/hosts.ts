/**
 * Several hosts in the URL of a store: the servers of one PostgreSQL cluster, of which one accepts writes.
 *
 * People write `postgres://app@db1:5432,db2:5433/queues`, as libpq reads it, which is not a URL that a parser
 * accepts. Inside of Redrive the hosts are the parameters `host` and `port`, which libpq reads as well:
 * `postgres://app@db1:5432/queues?host=db1,db2&port=5432,5433`.
 */
import { KnownError } from '../../errors.ts'

export type StoreHost = Readonly<{ host: string; port: number }>

const portDefault = 5432
const hostsMax = 16
const sessionParameter = 'target_session_attrs'
/** Both mean the server that accepts writes, which is the one that Redrive uses in any case. */
const sessionValues = ['read-write', 'primary']

const severalHosts = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#@]*,[^/?#@]*)(.*)$/s
const hostAndPort = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]]+))(?::(\d+))?$/i

/** Parses a URL with one or several hosts. Null: it is neither. */
export function parseStoreUrl(text: string): URL | null {
  const [, before = '', list, rest = ''] = severalHosts.exec(text) ?? []
  if (list === undefined) return URL.parse(text)
  const hosts = list.split(',').map(parseHost)
  const [first] = hosts
  const url = first == null ? null : URL.parse(`${before}${formatHost(first)}${rest}`)
  if (url === null || hosts.includes(null)) return null
  if (url.searchParams.has('host') || url.searchParams.has('port')) return null
  setHosts(
    url,
    hosts.filter((host) => host !== null),
  )
  return url
}

export function setHosts(url: URL, hosts: readonly StoreHost[]): void {
  url.searchParams.set('host', hosts.map(({ host }) => host).join(','))
  url.searchParams.set('port', hosts.map(({ port }) => port).join(','))
}

/** The hosts of a URL with several hosts; empty for a URL with one host or a Unix socket. */
export function readHosts(url: URL): readonly StoreHost[] {
  const hosts = (url.searchParams.get('host') ?? '').split(',')
  if (hosts.length < 2) return []
  const ports = (url.searchParams.get('port') ?? String(portDefault)).split(',')
  if (ports.length !== 1 && ports.length !== hosts.length) {
    throw refuse(`has ${hosts.length} hosts and ${ports.length} ports: give one port, or one for each host`)
  }
  if (hosts.length > hostsMax) throw refuse(`has ${hosts.length} hosts; at most ${hostsMax} are allowed`)
  return hosts.map((host, index) => {
    const port = Number(ports[index] ?? ports[0])
    if (!/^[^\s,/[\]]+$/.test(host)) throw refuse(`has the host ${JSON.stringify(host)}`)
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw refuse('has a port that is not a number')
    return { host, port }
  })
}

/** Returns the URL as the driver reads it, with the first host only. */
export function removeHosts(url: URL): URL {
  const rest = new URL(url)
  const removed = readHosts(url).length === 0 ? [] : ['host', 'port']
  for (const name of [sessionParameter, ...removed]) {
    // A deletion writes all parameters again, each with the escapes of a form.
    if (rest.searchParams.has(name)) rest.searchParams.delete(name)
  }
  return rest
}

/** Throws if the hosts do not fit together, or if a parameter asks for anything but the primary. */
export function checkHosts(url: URL): void {
  readHosts(url)
  const session = url.searchParams.get(sessionParameter)
  if (session === null || sessionValues.includes(session)) return
  throw refuse(
    `has ${sessionParameter}=${session}: omit it, because Redrive always uses the host that accepts writes`,
  )
}

export function formatHost({ host, port }: StoreHost): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

function parseHost(text: string): StoreHost | null {
  const [, address, name, port] = hostAndPort.exec(text) ?? []
  const host = address ?? name
  return host === undefined ? null : { host, port: Number(port ?? portDefault) }
}

function refuse(reason: string): KnownError {
  return new KnownError('STORE_URL_INVALID', `the store URL ${reason}`)
}
