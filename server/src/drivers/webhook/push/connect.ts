/**
 * Opens connections, only to addresses that the rules allow. The rules apply to the addresses that this
 * connection would use and to the connected address, so a name that changes its address between a check and
 * the connection (DNS rebinding) gains nothing.
 */
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import type { AddressChecker } from './address-rules.ts'
import type { ResolveHost } from './resolve-host.ts'

export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError'
  readonly code = 'FORBIDDEN_ADDRESS'
}

export type ConnectOptions = Readonly<{
  checker: AddressChecker
  resolve: ResolveHost
  timeoutMs: number
  /** PEM text of authorities to trust instead of the usual ones. */
  tlsCa?: string
  onOpen: (socket: Socket) => void
}>

export function createConnector(options: ConnectOptions): buildConnector.connector {
  const { checker } = options
  const connect = buildConnector({
    allowH2: true,
    preferH2: true,
    timeout: options.timeoutMs,
    autoSelectFamily: true,
    lookup: createLookup(options),
    ...(options.tlsCa !== undefined && { ca: options.tlsCa }),
  } as buildConnector.BuildOptions)
  return (target, callback) => {
    const host = target.hostname
    // The lookup is not called for an address.
    const problem = isIP(host) === 0 ? undefined : checker.findAddressProblem(host)
    if (problem !== undefined && !checker.isHostAllowed(host)) {
      queueMicrotask(() => callback(new ForbiddenAddressError(problem), null))
      return
    }
    connect(target, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null)
        return
      }
      const refusal = findConnectedProblem(checker, host, socket)
      if (refusal !== undefined) {
        socket.destroy()
        callback(new ForbiddenAddressError(refusal), null)
        return
      }
      options.onOpen(socket)
      callback(null, socket)
    })
  }
}

function findConnectedProblem(checker: AddressChecker, host: string, socket: Socket): string | undefined {
  if (checker.isHostAllowed(host)) return undefined
  return checker.findAddressProblem(socket.remoteAddress ?? '')
}

export function createLookup({
  checker,
  resolve,
}: Pick<ConnectOptions, 'checker' | 'resolve'>): LookupFunction {
  return (host, lookupOptions, callback) => {
    resolve(host).then(
      (found) => {
        const isAllowed = checker.isHostAllowed(host)
        const allowed = found.filter(
          ({ address }) => isAllowed || checker.findAddressProblem(address) === undefined,
        )
        const [first] = allowed
        if (first === undefined) {
          const problem = checker.findAddressProblem(found[0]?.address ?? '') ?? 'it has no address'
          callback(new ForbiddenAddressError(`${host} is forbidden: ${problem}`), '', 0)
        } else if (lookupOptions.all === true) {
          callback(null, [...allowed])
        } else {
          callback(null, first.address, first.family)
        }
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    )
  }
}
