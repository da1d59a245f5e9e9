import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { waitForNextTick } from './next-tick.ts'

describe('the next tick', () => {
  it('all callers in one tick share one promise, and the next tick has another', async () => {
    const first = waitForNextTick()
    expect(waitForNextTick()).toBe(first)
    await first
    expect(waitForNextTick()).not.toBe(first)
  })

  it('all requests that have arrived are read before the first continues, in order of arrival', async () => {
    const read: string[] = []
    const continued: string[] = []
    const readBeforeContinuing: number[] = []
    const server = createServer(async (request, response) => {
      const url = request.url ?? ''
      read.push(url)
      await waitForNextTick()
      readBeforeContinuing.push(read.length)
      continued.push(url)
      response.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const sockets: { socket: Socket; path: string }[] = []
    for (const path of ['/1', '/2', '/3', '/4']) {
      const accepted = once(server, 'connection')
      const socket = connect(port, '127.0.0.1')
      await Promise.all([accepted, once(socket, 'connect')])
      sockets.push({ socket, path })
    }
    try {
      const answers = sockets.map(({ socket }) => once(socket, 'data'))
      for (const { socket, path } of sockets) socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`)
      await Promise.all(answers)
      expect(readBeforeContinuing).toEqual([4, 4, 4, 4])
      expect(continued).toEqual(read)
    } finally {
      for (const { socket } of sockets) socket.destroy()
      server.close()
    }
  })
})
