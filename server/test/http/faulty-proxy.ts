import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach } from 'vitest'

/**
 * What the network does to one exchange. `lose-request`: the server never hears of it. `lose-answer`: it was
 * done, but nobody is told. `cut-answer`: in the middle of the answer.
 */
export type Fault = 'none' | 'lose-request' | 'lose-answer' | 'cut-answer'

export type FaultyProxy = Readonly<{
  url: string
  /** Paths in the order in which they came. */
  paths: string[]
}>

const ends: (() => void)[] = []

/** Stands between a client and a server, and loses what the test says. */
export async function startFaultyProxy(target: string, fault: (path: string) => Fault): Promise<FaultyProxy> {
  const paths: string[] = []
  const proxy = createServer(async (incoming, outgoing) => {
    const path = incoming.url ?? ''
    paths.push(path)
    const what = fault(path)
    const body = await incoming.toArray()
    if (what === 'lose-request') return void incoming.socket.destroy()
    try {
      await forward(target, incoming, Buffer.concat(body), outgoing, what)
    } catch {
      // The server itself is away, or the client is.
      incoming.socket.destroy()
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
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
    const asked = request(target + incoming.url, { method, headers, agent: false }, resolve)
    asked.on('error', reject)
    outgoing.on('close', () => asked.destroy())
    asked.end(body)
  })
  const content = Buffer.concat(await answer.toArray())
  if (fault === 'lose-answer') return void incoming.socket.destroy()
  outgoing.writeHead(answer.statusCode ?? 500, { ...answer.headers, connection: 'keep-alive' })
  if (fault === 'none') return void outgoing.end(content)
  outgoing.write(content.subarray(0, Math.max(content.length - 1, 0)), () => incoming.socket.destroy())
}

afterEach(() => {
  for (const end of ends.splice(0)) end()
})
