/**
 * Opens TCP connections for e-mail under the same rules as those of webhooks (push/connect.ts): the rules
 * apply to the addresses that the connection would use, and to the connected address.
 */
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import type { AddressChecker } from '../../webhook/push/address-rules.ts'
import { createLookup, ForbiddenAddressError } from '../../webhook/push/connect.ts'
import type { ResolveHost } from '../../webhook/push/resolve-host.ts'

export type GuardedTarget = Readonly<{ host: string; port: number; timeoutMs: number }>

export function openGuardedSocket(
  target: GuardedTarget,
  checker: AddressChecker,
  resolve: ResolveHost,
): Promise<Socket> {
  const { host, port, timeoutMs } = target
  const isAllowed = checker.isHostAllowed(host)
  const problem = isIP(host) === 0 || isAllowed ? undefined : checker.findAddressProblem(host)
  if (problem !== undefined) return Promise.reject(new ForbiddenAddressError(problem))
  const lookup: LookupFunction = createLookup({ checker, resolve })
  return new Promise((resolveSocket, reject) => {
    const socket = connect({ host, port, lookup, autoSelectFamily: true, timeout: timeoutMs })
    const fail = (error: Error): void => {
      socket.destroy()
      reject(error)
    }
    socket.once('error', fail)
    socket.once('timeout', () =>
      fail(Object.assign(new Error('the connection was not open in time'), { code: 'ETIMEDOUT' })),
    )
    socket.once('connect', () => {
      const refusal = isAllowed ? undefined : checker.findAddressProblem(socket.remoteAddress ?? '')
      if (refusal !== undefined) {
        fail(new ForbiddenAddressError(refusal))
        return
      }
      socket.setTimeout(0)
      socket.removeAllListeners('timeout')
      socket.removeListener('error', fail)
      resolveSocket(socket)
    })
  })
}
