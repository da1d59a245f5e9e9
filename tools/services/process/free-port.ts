import { once } from 'node:events'
import { createServer } from 'node:net'

/** Returns a port that was free a moment ago. Another process may take it before its use: callers retry. */
export async function findFreePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('the TCP server has no port')
  return address.port
}
