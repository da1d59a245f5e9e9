/** The sender against real receivers on loopback: well-behaved, slow, endless, broken and forbidden ones. */
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { Attempt } from '../../src/core/webhook/attempt.ts'
import { createSender } from '../../src/drivers/webhook/push/create-sender.ts'
import type { Sender, SenderOptions } from '../../src/drivers/webhook/push/sender.ts'
import { bytes, toText } from '../make.ts'
import { type DnsAnswer, type DnsServer, startDnsServer } from './dns-server.ts'
import {
  type ReceivedPush,
  type Receiver,
  receiverCa,
  startRawReceiver,
  startReceiver,
  startTlsReceiver,
} from './receivers.ts'

const senders: Sender[] = []
const receivers: Receiver[] = []
const dnsServers: DnsServer[] = []
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()))
  await Promise.all(senders.splice(0).map((sender) => sender.close()))
})
afterAll(() => Promise.all(dnsServers.map((server) => server.close())))

const kept = async <T extends Receiver>(starting: Promise<T>): Promise<T> => {
  const receiver = await starting
  receivers.push(receiver)
  return receiver
}

function newSender(options: Partial<SenderOptions> = {}): Sender {
  const sender = createSender({
    addresses: { isLoopbackAllowed: true, allowed: [] },
    timeoutMs: 10_000,
    ...options,
  })
  senders.push(sender)
  return sender
}

const push = (sender: Sender, url: string, body = 'a payload'): Promise<Attempt> =>
  sender.send({ url, headers: ['Content-Type', 'text/plain', 'X-A', 'b'], body: bytes(body) })

const failureOf = (attempt: Attempt) => ({
  kind: attempt.failure?.kind,
  errorClass: attempt.failure?.errorClass,
  errorCode: attempt.failure?.errorCode,
})

describe('pushes to receivers that behave', () => {
  it('a push is one POST with the given headers and the bytes of the body, and its answer is kept', async () => {
    const received: ReceivedPush[] = []
    const receiver = await kept(
      startReceiver((request, response) => {
        received.push(request)
        response.writeHead(202, { 'Content-Type': 'text/plain' }).end('thanks')
      }),
    )
    const attempt = await push(newSender(), `${receiver.url}/a/b?c=d%20e`)
    expect(attempt).toMatchObject({ isDelivered: true, status: 202, address: '127.0.0.1', failure: null })
    expect(attempt.response).toMatchObject({ contentType: 'text/plain', isTruncated: false })
    expect(toText(attempt.response?.bytes ?? null)).toBe('thanks')
    expect(attempt.latencyMs).toBeGreaterThan(0)
    expect(received).toHaveLength(1)
    expect(received[0]).toMatchObject({ path: '/a/b?c=d%20e', body: Buffer.from('a payload') })
    expect(received[0]?.headers).toMatchObject({
      'content-type': 'text/plain',
      'x-a': 'b',
      'content-length': '9',
    })
  })

  it('pushes to one origin use one connection again', async () => {
    const receiver = await kept(startReceiver())
    const sender = newSender()
    for (let count = 0; count < 20; count++) expect((await push(sender, receiver.url)).isDelivered).toBe(true)
    expect(receiver.connections()).toBe(1)
    expect(sender.counts()).toEqual({ origins: 1, sockets: 1, inProgress: 0 })
  })

  it('a receiver that offers HTTP/2 gets parallel pushes over one connection', async () => {
    const protocols = new Set<string>()
    const answer = (request: ReceivedPush, response: { end(text: string): unknown }): void => {
      protocols.add(request.protocol)
      response.end('ok')
    }
    const receiver = await kept(startTlsReceiver({ answer }))
    const sender = newSender({ tlsCa: receiverCa })
    const attempts = await Promise.all(Array.from({ length: 50 }, () => push(sender, receiver.url)))
    expect(attempts.every(({ isDelivered }) => isDelivered)).toBe(true)
    expect(attempts[49]?.address).toBe('127.0.0.1')
    expect([...protocols]).toEqual(['2.0'])
    expect(receiver.connections()).toBe(1)
  })

  it('a TLS receiver without HTTP/2 gets HTTP/1.1', async () => {
    let protocol = ''
    const receiver = await kept(
      startTlsReceiver({
        isHttp2: false,
        answer: (request, response) => {
          protocol = request.protocol
          response.end()
        },
      }),
    )
    expect((await push(newSender({ tlsCa: receiverCa }), receiver.url)).isDelivered).toBe(true)
    expect(protocol).toBe('1.1')
  })

  it('a status other than 2xx is a failure with status, body and Retry-After', async () => {
    const receiver = await kept(
      startReceiver((_request, response) => response.writeHead(503, { 'Retry-After': '120' }).end('busy')),
    )
    const attempt = await push(newSender(), receiver.url)
    expect(attempt).toMatchObject({
      isDelivered: false,
      status: 503,
      failure: {
        kind: 'status',
        errorClass: 'HttpStatusError',
        errorCode: 'http_503',
        message: 'the receiver answered 503 Service Unavailable',
        retryAfter: '120',
      },
    })
    expect(toText(attempt.response?.bytes ?? null)).toBe('busy')
  })

  it('a redirect is not followed', async () => {
    let requests = 0
    const receiver = await kept(
      startReceiver((_request, response) => {
        requests += 1
        response.writeHead(307, { Location: '/elsewhere' }).end()
      }),
    )
    const attempt = await push(newSender(), receiver.url)
    expect(failureOf(attempt)).toEqual({
      kind: 'redirect',
      errorClass: 'HttpRedirectError',
      errorCode: 'http_307',
    })
    expect(requests).toBe(1)
  })

  it('user and password of the URL become basic authentication, and no message shows them', async () => {
    let authorization: string | undefined
    const receiver = await kept(
      startReceiver((request, response) => {
        authorization = request.headers.authorization
        response.writeHead(401).end()
      }),
    )
    const attempt = await push(newSender(), receiver.url.replace('//', '//me:s%40cret@'))
    expect(authorization).toBe(`Basic ${Buffer.from('me:s@cret').toString('base64')}`)
    expect(JSON.stringify(attempt.failure)).not.toContain('cret')
  })
})

describe('pushes to hostile receivers', () => {
  it('a body of 100 MB is cut off, and only its first 4 KiB are kept', async () => {
    let sent = 0
    const receiver = await kept(
      startReceiver((_request, response) => {
        const chunk = Buffer.alloc(64 * 1_024, 'x')
        response.writeHead(200, { 'Content-Length': 100 * 1_024 * 1_024 })
        const write = (): void => {
          while (sent < 100 * 1_024 * 1_024 && !response.destroyed) {
            sent += chunk.length
            if (!response.write(chunk)) break
          }
        }
        response.on('drain', write)
        response.on('error', () => undefined)
        write()
      }),
    )
    const attempt = await push(newSender(), receiver.url)
    expect(attempt).toMatchObject({ isDelivered: true, status: 200 })
    expect(attempt.response?.bytes).toHaveLength(4_096)
    expect(attempt.response?.isTruncated).toBe(true)
    expect(sent).toBeLessThan(20 * 1_024 * 1_024)
  })

  it('a body of exactly 4 KiB is complete, and keeps its connection', async () => {
    const receiver = await kept(startReceiver((_request, response) => response.end(Buffer.alloc(4_096, 'x'))))
    const sender = newSender()
    for (let count = 0; count < 2; count++) {
      const attempt = await push(sender, receiver.url)
      expect(attempt.response?.bytes).toHaveLength(4_096)
      expect(attempt.response?.isTruncated).toBe(false)
    }
    expect(receiver.connections()).toBe(1)
  })

  it('a body that never ends does not delay the attempt for longer than the body timeout', async () => {
    const receiver = await kept(
      startReceiver((_request, response) => {
        const timer = setInterval(() => response.write('x'), 5)
        response.on('close', () => clearInterval(timer))
      }),
    )
    const sender = newSender({ bodyTimeoutMs: 100 })
    const attempt = await push(sender, receiver.url)
    expect(attempt).toMatchObject({ isDelivered: true, status: 200 })
    expect(attempt.response?.isTruncated).toBe(true)
  })

  it.each([
    ['accepts the connection and is silent', () => undefined],
    [
      'sends its headers byte by byte',
      (socket: { write(text: string): unknown; on(event: 'close', listener: () => void): unknown }) => {
        const timer = setInterval(() => socket.write('X'), 5)
        socket.on('close', () => clearInterval(timer))
        socket.write('HTTP/1.1 200 OK\r\nX-Slow: ')
      },
    ],
    [
      'sends interim answers for ever',
      (socket: { write(text: string): unknown; on(event: 'close', listener: () => void): unknown }) => {
        const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 5)
        socket.on('close', () => clearInterval(timer))
      },
    ],
  ])('a receiver that %s costs its timeout and no more', async (_name, talk) => {
    const receiver = await kept(startRawReceiver(talk))
    const sender = newSender({ headersTimeoutMs: 150 })
    const attempt = await push(sender, receiver.url)
    expect(failureOf(attempt)).toEqual({
      kind: 'timeout',
      errorClass: 'TimeoutError',
      errorCode: 'HEADERS_TIMEOUT',
    })
    const total = await newSender({ timeoutMs: 150 }).send({
      url: receiver.url,
      headers: [],
      body: bytes('x'),
    })
    expect(failureOf(total).errorCode).toBe('PUSH_TIMEOUT')
    await expect.poll(() => sender.counts().inProgress).toBe(0)
  })

  it('headers larger than 16 KiB end the push', async () => {
    const receiver = await kept(
      startRawReceiver((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\n${'X-Large: '.padEnd(200_000, 'x')}\r\n\r\n`)
      }),
    )
    expect(failureOf(await push(newSender(), receiver.url))).toMatchObject({ kind: 'protocol' })
  })

  it.each([
    ['resets the connection', 'reset', (socket: { resetAndDestroy(): unknown }) => socket.resetAndDestroy()],
    ['closes the connection', 'reset', (socket: { end(): unknown }) => socket.end()],
    [
      'does not speak HTTP',
      'protocol',
      (socket: { end(text: string): unknown }) => socket.end('SSH-2.0-x\r\n'),
    ],
    [
      'declares two lengths',
      'protocol',
      (socket: { end(text: string): unknown }) =>
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
    ],
  ])('a receiver that %s fails the attempt with kind %s', async (_name, kind, talk) => {
    const receiver = await kept(startRawReceiver((socket) => socket.once('data', () => talk(socket))))
    expect(failureOf(await push(newSender(), receiver.url)).kind).toBe(kind)
  })

  it('a reset in the middle of a 2xx body does not change the outcome', async () => {
    const receiver = await kept(
      startRawReceiver((socket) =>
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart')
          setTimeout(() => socket.resetAndDestroy(), 20)
        }),
      ),
    )
    const attempt = await push(newSender(), receiver.url)
    expect(attempt).toMatchObject({ isDelivered: true, response: { isTruncated: true } })
    expect(toText(attempt.response?.bytes ?? null)).toBe('part')
  })

  it('no receiver, an unknown name and an untrusted certificate have their own kinds', async () => {
    const closed = await startReceiver()
    await closed.close()
    expect(failureOf(await push(newSender(), closed.url))).toEqual({
      kind: 'refused',
      errorClass: 'ConnectionError',
      errorCode: 'ECONNREFUSED',
    })
    const dns = await newDns(() => undefined)
    const unknown = await push(newSender({ dns }), 'http://unknown.example.invalid/')
    expect(failureOf(unknown)).toMatchObject({ kind: 'dns', errorClass: 'DnsError' })
    const tls = await kept(startTlsReceiver())
    expect(failureOf(await push(newSender(), tls.url)).kind).toBe('tls')
  })

  it('a TLS handshake that hangs ends with the connect timeout', async () => {
    const receiver = await kept(startRawReceiver(() => undefined))
    const attempt = await push(newSender({ connectTimeoutMs: 150 }), receiver.url.replace('http:', 'https:'))
    expect(failureOf(attempt)).toEqual({
      kind: 'timeout',
      errorClass: 'TimeoutError',
      errorCode: 'CONNECT_TIMEOUT',
    })
    expect(attempt.address).toBeNull()
  })

  it('an abort ends a push that waits for its answer', async () => {
    const receiver = await kept(startRawReceiver(() => undefined))
    const sender = newSender()
    const attempt = sender.send({ url: receiver.url, headers: [], body: bytes('x') })
    await expect.poll(() => receiver.connections()).toBe(1)
    sender.abort()
    expect(failureOf(await attempt)).toEqual({
      kind: 'aborted',
      errorClass: 'AbortedError',
      errorCode: 'ABORTED',
    })
    await expect.poll(() => sender.counts()).toMatchObject({ inProgress: 0, sockets: 0 })
    const later = await sender.send({ url: receiver.url, headers: [], body: bytes('x') })
    expect(failureOf(later)).toMatchObject({ kind: 'aborted' })
  })

  it('origins and idle sockets are bounded, and the least recently used close first', async () => {
    const many = await Promise.all(Array.from({ length: 6 }, () => kept(startReceiver())))
    const sender = newSender({ originsMax: 4, idleSocketsMax: 3, idleTimeoutMs: 60_000 })
    for (const receiver of many) expect((await push(sender, receiver.url)).isDelivered).toBe(true)
    await expect.poll(() => sender.counts().sockets).toBeLessThanOrEqual(3)
    expect(sender.counts().origins).toBeLessThanOrEqual(4)
    await push(sender, many[5]?.url ?? '')
    expect(many[5]?.connections()).toBe(1)
  })

  it.each(['', '/path', 'ftp://a/', 'javascript:1', 'http://'])('%j is not a URL for pushes', async (url) => {
    const sender = newSender()
    expect(sender.checkUrl(url)).toContain('callback URL')
    expect(failureOf(await push(sender, url)).kind).toBe('protocol')
  })
})

describe('where a push may go', () => {
  const forbidden = {
    kind: 'forbidden-address',
    errorClass: 'ForbiddenAddressError',
    errorCode: 'FORBIDDEN_ADDRESS',
  }
  const strict: Partial<SenderOptions> = { addresses: { isLoopbackAllowed: false, allowed: [] } }

  it('a URL with a forbidden address is refused before any connection', async () => {
    const receiver = await kept(startReceiver())
    const sender = newSender(strict)
    expect(sender.checkUrl(receiver.url)).toBe('127.0.0.1 is a loopback address')
    const attempt = await push(sender, receiver.url)
    expect(failureOf(attempt)).toEqual(forbidden)
    expect(attempt.address).toBeNull()
    expect(receiver.connections()).toBe(0)
  })

  it('a name whose address is forbidden is refused, also among allowed addresses', async () => {
    const receiver = await kept(startReceiver())
    const dns = await newDns((name) =>
      name === 'inside.example' ? ['127.0.0.1'] : ['10.0.0.1', '127.0.0.1'],
    )
    const sender = newSender({ ...strict, dns })
    expect(sender.checkUrl(`http://inside.example:${receiver.port}/`)).toBeUndefined()
    expect(failureOf(await push(sender, `http://inside.example:${receiver.port}/`))).toEqual(forbidden)
    const loopback = newSender({ dns })
    expect((await push(loopback, `http://mixed.example:${receiver.port}/`)).isDelivered).toBe(true)
    expect(receiver.connections()).toBe(1)
  })

  it('a name that changes its address to a forbidden one is refused at the next connection', async () => {
    const receiver = await kept(
      startReceiver((_request, response) => response.writeHead(200, { Connection: 'close' }).end()),
    )
    const answers = [['127.0.0.1'], ['169.254.169.254']]
    let asked = 0
    const dns = await newDns((name) =>
      name === 'rebind.example' ? answers[Math.min(asked++ >> 1, 1)] : undefined,
    )
    const sender = newSender({ dns })
    expect((await push(sender, `http://rebind.example:${receiver.port}/`)).isDelivered).toBe(true)
    const second = await push(sender, `http://rebind.example:${receiver.port}/`)
    expect(failureOf(second)).toEqual(forbidden)
    expect(second.failure?.message).toContain('169.254.169.254 is a link-local address')
  })

  it('an allowed name and an allowed range open the way', async () => {
    const receiver = await kept(startReceiver())
    const dns = await newDns(() => ['127.0.0.1'])
    const byName = newSender({ addresses: { isLoopbackAllowed: false, allowed: ['*.corp.example'] }, dns })
    expect((await push(byName, `http://a.corp.example:${receiver.port}/`)).isDelivered).toBe(true)
    expect(failureOf(await push(byName, `http://other.example:${receiver.port}/`))).toEqual(forbidden)
    const byRange = newSender({ addresses: { isLoopbackAllowed: false, allowed: ['127.0.0.0/8'] }, dns })
    expect((await push(byRange, `http://other.example:${receiver.port}/`)).isDelivered).toBe(true)
  })

  it('names whose DNS server is silent do not delay a push to another name', async () => {
    const receiver = await kept(startReceiver())
    const dns = await newDns((name) => (name.startsWith('silent') ? 'silence' : ['127.0.0.1']))
    const sender = newSender({ dns: { ...dns, timeoutMs: 300 }, connectTimeoutMs: 5_000 })
    let settled = 0
    const silent = Array.from({ length: 20 }, (_, index) =>
      push(sender, `http://silent${index}.example/`).finally(() => {
        settled += 1
      }),
    )
    expect((await push(sender, `http://fast.example:${receiver.port}/`)).isDelivered).toBe(true)
    expect(settled).toBe(0)
    for (const attempt of await Promise.all(silent)) expect(failureOf(attempt).kind).toBe('dns')
  })
})

async function newDns(answer: DnsAnswer): Promise<{ servers: string[] }> {
  const server = await startDnsServer(answer)
  dnsServers.push(server)
  return { servers: [server.address] }
}
