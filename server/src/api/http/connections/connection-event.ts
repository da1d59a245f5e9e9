import type { Server } from 'node:http'
import { Server as TlsServer } from 'node:tls'

/**
 * The event with the connection that requests name as their socket. With TLS that is the encrypted one, which
 * exists after the handshake.
 */
export function connectionEvent(server: Server): 'connection' | 'secureConnection' {
  return (server as unknown) instanceof TlsServer ? 'secureConnection' : 'connection'
}
