import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type DiscardLimits, discardBody } from './discard-body.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/**
 * Sends an endless body to a server that discards it. Resolves with the bytes the server read until it
 * disconnected.
 */
async function sendEndlessBody(limits: DiscardLimits): Promise<number> {
  let bytesRead = 0
  const server = createServer((request, response) => {
    response.end('no')
    discardBody(request, limits)
    request.on('data', (chunk: Uint8Array) => {
      bytesRead += chunk.length
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  ends.push(() => {
    socket.destroy()
    server.close()
  })
  socket.on('error', () => {})
  socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n')
  const chunk = Buffer.alloc(64 * 1_024)
  const send = (): void => {
    if (!socket.destroyed) socket.write(chunk, () => setImmediate(send))
  }
  send()
  socket.resume()
  await new Promise((resolve) => socket.once('close', resolve))
  return bytesRead
}

describe('discarding a body', () => {
  it('a client that sends more bytes than the limit is disconnected', async () => {
    const bytesRead = await sendEndlessBody({ bytesMax: 5_000_000, msMax: 60_000 })
    expect(bytesRead).toBeGreaterThan(5_000_000)
    expect(bytesRead).toBeLessThan(10_000_000)
  })

  it('a client that sends for longer than the time limit is disconnected', async () => {
    expect(await sendEndlessBody({ bytesMax: Number.POSITIVE_INFINITY, msMax: 100 })).toBeGreaterThan(0)
  })
})
