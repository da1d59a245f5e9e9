import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { KnownError } from './errors.ts'

/**
 * Connections that wait to be accepted. If more arrive, the system drops them, and their clients (health
 * checks among them) try again only after a second. The system may lower the value (on Linux
 * `net.core.somaxconn`).
 */
const waitingConnectionsMax = 16_384

export async function listen(app: FastifyInstance, host: string, port: number): Promise<void> {
  const { server } = app
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, backlog: waitingConnectionsMax }, () => {
      server.off('error', reject)
      resolve()
    })
  }).catch((error: NodeJS.ErrnoException) => {
    throw toPortError(error, host, port)
  })
}

function toPortError(error: NodeJS.ErrnoException, host: string, port: number): unknown {
  switch (error.code) {
    case 'EADDRINUSE':
      return new KnownError('PORT_TAKEN', `port ${port} on ${host} is taken by another program`, error)
    case 'EACCES':
      return new KnownError(
        'PORT_REFUSED',
        `the operating system does not allow listening on port ${port} of ${host}`,
        error,
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new KnownError('PORT_REFUSED', `${host} is not an address of this machine`, error)
    default:
      return error
  }
}

export function toUrl({ address, family, port }: AddressInfo, isTls: boolean): string {
  return `${isTls ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
