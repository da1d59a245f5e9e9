/** Receivers for tests of pushes: real TCP, HTTP and HTTP/2 servers on loopback, also hostile ones. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createSecureServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createAuthority } from '../certificates.ts'

export type ReceivedPush = Readonly<{
  path: string
  headers: IncomingMessage['headers']
  rawHeaders: readonly string[]
  body: Buffer
  protocol: string
}>

export type Receiver = Readonly<{
  url: string
  port: number
  /** Connections that were opened since the start. */
  connections(): number
  close(): Promise<void>
}>

export type Answer = (push: ReceivedPush, response: ServerResponse) => void

/** An HTTP/1.1 receiver; by default it answers 200 with `ok`. */
export async function startReceiver(
  answer: Answer = (_push, response) => response.end('ok'),
): Promise<Receiver> {
  return listen(
    createHttpServer((request, response) => collect(request, response, answer)),
    'http',
  )
}

const authority = createAuthority('receivers of tests')
/** PEM text of the authority of all TLS receivers. */
export const receiverCa = authority.certificate

/** A TLS receiver that offers HTTP/2, or HTTP/1.1 alone. */
export async function startTlsReceiver(
  options: Readonly<{ hosts?: readonly string[]; isHttp2?: boolean; answer?: Answer }> = {},
): Promise<Receiver> {
  const { certificate, key } = authority.issue({ name: 'receiver', hosts: options.hosts ?? ['127.0.0.1'] })
  const { answer = (_push, response) => response.end('ok') } = options
  const tls = { cert: certificate, key }
  if (options.isHttp2 === false) {
    return listen(
      createHttpsServer(tls, (request, response) => collect(request, response, answer)),
      'https',
    )
  }
  const server = createHttp2Server({ ...tls, allowHTTP1: true }, (request, response) =>
    collect(request as unknown as IncomingMessage, response as unknown as ServerResponse, answer),
  )
  return listen(server as unknown as Server, 'https')
}

/** A receiver that speaks bytes: `talk` gets each connection. */
export async function startRawReceiver(talk: (socket: Socket) => void): Promise<Receiver> {
  return listen(createTcpServer(talk), 'http')
}

async function listen(server: Server, scheme: 'http' | 'https'): Promise<Receiver> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    port,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

function collect(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('error', () => undefined)
  request.on('end', () => {
    const { url = '/', headers, rawHeaders, httpVersion } = request
    answer({ path: url, headers, rawHeaders, body: Buffer.concat(chunks), protocol: httpVersion }, response)
  })
}
