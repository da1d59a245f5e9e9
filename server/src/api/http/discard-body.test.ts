import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type DiscardLimits, discardBody } from './discard-body.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** A client that sends a body without end to a server that reads it away. */
async function sendForEver(bounds: DiscardLimits): Promise<number> {
  const server = createServer((request, response) => {
    response.end('no')
    discardBody(request, bounds)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  ends.push(() => {
    socket.destroy()
    server.close()
  })
  const startedAt = performance.now()
  socket.on('error', () => {})
  socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n')
  const chunk = Buffer.alloc(64 * 1_024)
  const send = (): void => {
    if (!socket.destroyed) socket.write(chunk, () => setImmediate(send))
  }
  send()
  socket.resume()
  await new Promise((resolve) => socket.once('close', resolve))
  return performance.now() - startedAt
}

describe('a body that nobody wants', () => {
  it('is read up to so many bytes', async () => {
    expect(await sendForEver({ bytesMax: 5_000_000, msMax: 60_000 })).toBeLessThan(20_000)
  })

  it('is read for so long', async () => {
    expect(await sendForEver({ bytesMax: Number.POSITIVE_INFINITY, msMax: 100 })).toBeLessThan(20_000)
  })
})
