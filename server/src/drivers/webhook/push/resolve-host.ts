/**
 * Addresses of host names.
 *
 * `getaddrinfo` blocks a thread of the pool that files use, too: four names whose DNS server does not answer
 * would stop every lookup of the process. Names with a domain are therefore asked with c-ares, which blocks
 * no thread. Only names that DNS does not know go to `getaddrinfo`, which also reads the hosts file and the
 * search domains, at most two at a time.
 */
import { lookup as lookupSystem, Resolver } from 'node:dns/promises'

export type ResolvedAddress = Readonly<{ address: string; family: 4 | 6 }>
/** Rejects with an error that has a code, such as ENOTFOUND. Never resolves with an empty list. */
export type ResolveHost = (host: string) => Promise<readonly ResolvedAddress[]>

export type DnsOptions = Readonly<{
  /** `address:port` of DNS servers instead of those of the system. */
  servers?: readonly string[]
  timeoutMs?: number
}>

const systemLookupsMax = 2
/** DNS has no answer, or there is no DNS server: the hosts file may know the name. */
const unknownCodes = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'])

export function createHostResolver({ servers, timeoutMs = 2_000 }: DnsOptions = {}): ResolveHost {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  const resolveSystem = limitParallel(systemLookupsMax, async (host) => {
    const found = await lookupSystem(host, { all: true })
    return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
  })
  return shareCalls(async (host) => {
    if (!isDomainName(host)) return resolveSystem(host)
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const addresses = readAnswers(...answers)
    if (addresses.length > 0) return addresses
    const reason: unknown = answers[0].status === 'rejected' ? answers[0].reason : undefined
    if (unknownCodes.has(readCode(reason))) return resolveSystem(host)
    throw reason
  })
}

type Answer = PromiseSettledResult<readonly string[]>

/** IPv4 first: many networks have IPv6 addresses without a route to the outside. */
function readAnswers(ipv4: Answer, ipv6: Answer): ResolvedAddress[] {
  const read = (answer: Answer, family: 4 | 6): ResolvedAddress[] =>
    answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family })) : []
  return [...read(ipv4, 4), ...read(ipv6, 6)]
}

function isDomainName(host: string): boolean {
  return host.includes('.') && !/\.(?:localhost|local)\.?$/i.test(host)
}

function readCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Calls for one host at the same time are one call. */
function shareCalls(resolve: ResolveHost): ResolveHost {
  const current = new Map<string, ReturnType<ResolveHost>>()
  return (host) => {
    const known = current.get(host)
    if (known !== undefined) return known
    const found = resolve(host).finally(() => current.delete(host))
    current.set(host, found)
    return found
  }
}

function limitParallel(parallelMax: number, resolve: ResolveHost): ResolveHost {
  const waiting: (() => void)[] = []
  let running = 0
  return async (host) => {
    if (running < parallelMax) running += 1
    else await new Promise<void>((start) => waiting.push(start))
    try {
      return await resolve(host)
    } finally {
      // The place goes to the next call without becoming free in between.
      const next = waiting.shift()
      if (next === undefined) running -= 1
      else next()
    }
  }
}
