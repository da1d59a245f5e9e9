import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { waitForNextTick } from './next-tick.ts'

describe('the end of a turn', () => {
  it('is the same for all who ask for it in one turn, and another one in the next', async () => {
    const first = waitForNextTick()
    expect(waitForNextTick()).toBe(first)
    await first
    expect(waitForNextTick()).not.toBe(first)
  })

  it('comes when all requests that have arrived are read; they go on in their order', async () => {
    const read: string[] = []
    const wentOn: string[] = []
    const readBeforeAnyWentOn: number[] = []
    const server = createServer(async (request, response) => {
      const url = request.url ?? ''
      read.push(url)
      await waitForNextTick()
      readBeforeAnyWentOn.push(read.length)
      wentOn.push(url)
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
      expect(readBeforeAnyWentOn).toEqual([4, 4, 4, 4])
      expect(wentOn).toEqual(read)
    } finally {
      for (const { socket } of sockets) socket.destroy()
      server.close()
    }
  })
})
