import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach } from 'vitest'

/**
 * The fault that the network causes in one HTTP exchange. `lose-request`: the request does not reach the
 * server. `lose-answer`: the server executes the request, but its answer does not reach the client.
 * `cut-answer`: the connection breaks before the last byte of the answer.
 */
export type Fault = 'none' | 'lose-request' | 'lose-answer' | 'cut-answer'

export type FaultyProxy = Readonly<{
  url: string
  /** The paths of all requests, in the order of their arrival. */
  paths: string[]
}>

const cleanups: (() => void)[] = []

/** Starts a proxy between a client and a server. `chooseFault` decides the fault for each request. */
export async function startFaultyProxy(
  target: string,
  chooseFault: (path: string) => Fault,
): Promise<FaultyProxy> {
  const paths: string[] = []
  const proxy = createServer(async (incoming, outgoing) => {
    const path = incoming.url ?? ''
    paths.push(path)
    const fault = chooseFault(path)
    const body = await incoming.toArray()
    if (fault === 'lose-request') return void incoming.socket.destroy()
    try {
      await forward(target, incoming, Buffer.concat(body), outgoing, fault)
    } catch {
      // The server or the client closed its connection.
      incoming.socket.destroy()
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, paths }
}

async function forward(
  target: string,
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
  fault: Fault,
): Promise<void> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const { method = 'GET', headers } = incoming
    const outgoingRequest = request(target + incoming.url, { method, headers, agent: false }, resolve)
    outgoingRequest.on('error', reject)
    outgoing.on('close', () => outgoingRequest.destroy())
    outgoingRequest.end(body)
  })
  const content = Buffer.concat(await answer.toArray())
  if (fault === 'lose-answer') return void incoming.socket.destroy()
  outgoing.writeHead(answer.statusCode ?? 500, { ...answer.headers, connection: 'keep-alive' })
  if (fault === 'none') return void outgoing.end(content)
  outgoing.write(content.subarray(0, Math.max(content.length - 1, 0)), () => incoming.socket.destroy())
}

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})
