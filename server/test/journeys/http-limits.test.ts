import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import type { ApiParts } from '../../src/api/create-api.ts'
import {
  type AnswerKind,
  answersMax,
  bodiesReadMax,
  largeBodyBytes,
} from '../../src/api/http/connections/capacity.ts'
import { reservedMax } from '../../src/api/http/connections/connection-reserve.ts'
import { type HttpLimits, toHttpLimits } from '../../src/api/http/connections/http-limits.ts'
import { route } from '../../src/api/http/route.ts'
import { plainJsonValuesMax } from '../../src/api/http/wire/json-size.ts'
import { v1 } from '../../src/api/v1/dialect.ts'
import { pollUntil } from '../http/poll-until.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { startTestApi } from '../http/test-api.ts'
import { testSettings } from '../http/test-server.ts'

const echo = route({
  method: 'POST',
  path: '/echo',
  operationId: 'echo',
  permission: 'public',
  summary: 'Returns the length of the text.',
  tag: 'server',
  dialect: v1,
  bodyBytesMax: 1_000,
  schema: {
    body: Type.Object({ text: Type.String() }, { additionalProperties: false }),
    response: { 200: Type.Object({ length: Type.Integer() }) },
  },
  handler: ({ body }) => ({ length: body.text.length }),
})

function startEcho(limits: Partial<HttpLimits> = {}, over: Partial<ApiParts> = {}) {
  return startTestApi({ routes: [echo], limits: { ...toHttpLimits(testSettings()), ...limits }, ...over })
}

async function post(url: string, body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}) {
  const answer = await fetch(`${url}/echo`, {
    method: 'POST',
    body,
    headers: { 'Content-Type': 'application/json', ...headers },
  })
  return { status: answer.status, body: await answer.json() }
}

const createBody = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes - 11) })

describe('the limits of a request', () => {
  it('a body with exactly the maximum size is accepted, and one byte more is refused', async () => {
    const { url } = await startEcho()
    expect(await post(url, createBody(1_000))).toEqual({ status: 200, body: { length: 989 } })
    expect(await post(url, createBody(1_001))).toMatchObject({
      status: 413,
      body: {
        error: { code: 'BODY_TOO_LARGE', message: 'the request body exceeds the limit of 1000 bytes' },
      },
    })
  })

  it('a chunked body that exceeds the maximum size is refused', async () => {
    const { port } = await startEcho()
    const raw = await connectRaw(port)
    raw.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    raw.write(`7d0\r\n${'x'.repeat(2_000)}\r\n`)
    expect(await raw.readTo('}}')).toMatch(/^HTTP\/1\.1 413 /)
    // The server discards the rest of the body, and the connection stays usable.
    raw.write(`7d0\r\n${'x'.repeat(2_000)}\r\n0\r\n\r\n`)
    raw.write('GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await raw.readTo('}}')).toMatch(/HTTP\/1\.1 405 /)
  })

  it.each([
    ['two Host headers', 'Host: example.com\r\nContent-Length: 2', 400, 'two Host headers'],
    ['an unknown transfer encoding', 'Transfer-Encoding: gzip, chunked', 400, 'Transfer-Encoding'],
    ['a compressed body', 'Content-Encoding: gzip\r\nContent-Length: 2', 415, 'without compression'],
  ])('a request with %s is refused', async (_, headers, status, message) => {
    const { port } = await startEcho()
    const raw = await connectRaw(port)
    raw.write(
      `POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}\r\n\r\n`,
    )
    const answer = await raw.readTo('}}')
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toContain(message)
  })

  it('a client can read the refusal of its body, regardless of the size of the body', async () => {
    const { url } = await startEcho()
    for (let round = 0; round < 5; round++) {
      for (const bytes of [100_000, 3_000_000, 30_000_000]) {
        expect(await post(url, createBody(bytes))).toMatchObject({
          status: 413,
          body: { error: { code: 'BODY_TOO_LARGE' } },
        })
      }
    }
  })

  it('the connection of a client that does not finish a refused body is closed', async () => {
    const { port } = await startEcho()
    const raw = await connectRaw(port)
    raw.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nxxx')
    expect(await raw.readToEnd()).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('the body limit of the server applies to a path with a larger limit', async () => {
    const { url } = await startEcho({ bodyBytesMax: 100 })
    expect(await post(url, createBody(101))).toMatchObject({ status: 413 })
  })

  it.each([100, 101, 200])('a request with %i headers in addition to Host is refused', async (count) => {
    const { port } = await startEcho()
    const raw = await connectRaw(port)
    const headers = Array.from({ length: count }, (_, number) => `A${number}: 1\r\n`).join('')
    raw.write(`GET /echo HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`)
    expect(await raw.readTo('}}')).toMatch(/^HTTP\/1\.1 431 [\s\S]*more than 100 headers/)
  })

  it('headers that are too large get 431, and headers that arrive too slowly get 408', async () => {
    const { port } = await startEcho({ headerBytesMax: 2_000, headersMsMax: 150, requestMsMax: 300 })
    const large = await connectRaw(port)
    large.write(`GET /echo HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(2_000)}\r\n\r\n`)
    expect(await large.readToEnd()).toMatch(/^HTTP\/1\.1 431 [\s\S]*"code":"HEADERS_TOO_LARGE"/)

    const slow = await connectRaw(port)
    slow.write('GET /echo HTTP/1.1\r\nHost: localhost\r\n')
    expect(await slow.readToEnd()).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"REQUEST_TIMEOUT"/)
  })

  it('a body that does not arrive in time gets 408', async () => {
    const { port } = await startEcho({ headersMsMax: 100, requestMsMax: 200 })
    const raw = await connectRaw(port)
    raw.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"text":')
    expect(await raw.readToEnd()).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"REQUEST_TIMEOUT"/)
  })

  it('a connection that sends no request is closed with 408', async () => {
    const { port } = await startEcho({ headersMsMax: 100, requestMsMax: 200 })
    const raw = await connectRaw(port)
    expect(await raw.readToEnd()).toMatch(/^HTTP\/1\.1 408 /)
  })

  it('a URL that is too long gets 414', async () => {
    const { url } = await startEcho({ urlBytesMax: 100 })
    const answer = await fetch(`${url}/echo?${'x'.repeat(200)}`, { method: 'POST' })
    expect([answer.status, await answer.json()]).toMatchObject([414, { error: { code: 'URL_TOO_LONG' } }])
  })

  it('connections beyond the maximum number are closed at once, with a warning in the log', async () => {
    const { port, lines } = await startEcho({ connectionsMax: 2 })
    const kept = [await connectRaw(port), await connectRaw(port)]
    for (let reserved = 0; reserved < reservedMax; reserved++) await connectRaw(port)
    const dropped = await connectRaw(port)
    expect(await dropped.readToEnd()).toBe('')
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', connections_max: 2 }))
    kept[0]?.write('GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(await kept[0]?.readToEnd()).toMatch(/^HTTP\/1\.1 405 /)
  })

  it('the request timeout does not end a response that takes longer', async () => {
    let finish: (answer: { length: number }) => void = () => {}
    let resolveCalled: () => void = () => {}
    const whenCalled = new Promise<void>((resolve) => (resolveCalled = resolve))
    const poll = {
      ...echo,
      handler: () => {
        resolveCalled()
        return new Promise<never>((resolve) => (finish = resolve as never))
      },
    }
    const { url, port } = await startEcho({ headersMsMax: 50, requestMsMax: 100 }, { routes: [poll] })
    const polling = post(url, '{"text":""}')
    await whenCalled
    // The server closes each of these connections at the request timeout, so it has passed for the first
    // request.
    await (await connectRaw(port)).readToEnd()
    await (await connectRaw(port)).readToEnd()
    finish({ length: 7 })
    expect(await polling).toEqual({ status: 200, body: { length: 7 } })
  })
})

describe('an invalid request', () => {
  it.each([
    ['GARBAGE\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: 1\r\n\r\n', 400],
    ['POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n', 400],
    ['GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 400],
    ['GET /echo%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 404],
    ['BREW /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 400],
    ['PROPFIND /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 405],
  ])('the invalid request %j gets %i', async (text, status) => {
    const { port } = await startEcho()
    const raw = await connectRaw(port)
    raw.write(text)
    expect(await raw.readToEnd()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  })

  it.each([
    ['{"text":', { 'Content-Type': 'application/json' }, 400, 'BAD_REQUEST'],
    ['{"text":1}', {}, 400, 'BAD_REQUEST'],
    ['null', {}, 400, 'BAD_REQUEST'],
    ['', {}, 400, 'BAD_REQUEST'],
    ['\uFEFF{"text":"bom"}', {}, 200, undefined],
    ['a=b', { 'Content-Type': 'application/x-www-form-urlencoded' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['{}', { 'Content-Type': 'not a type' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['{"text":"x"}', { 'Content-Type': 'application/json; charset=utf-8' }, 200, undefined],
  ])('the body %j with headers %j gets status %i and code %s', async (body, headers, status, code) => {
    const { url, lines } = await startEcho()
    const answer = await post(url, body, headers as Record<string, string>)
    expect([answer.status, (answer.body as { error?: { code: string } }).error?.code]).toEqual([status, code])
    expect(lines.filter((line) => line.level === 'error')).toEqual([])
  })

  it('a body that is not UTF-8 gets 400', async () => {
    const { url } = await startEcho()
    expect(await post(url, Buffer.from([0x7b, 0xff, 0x7d]))).toMatchObject({ status: 400 })
  })

  it('a client that disconnects while sending its body leaves no error in the log', async () => {
    const { port, url, lines } = await startEcho()
    const raw = await connectRaw(port)
    raw.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"text":')
    raw.socket.destroy()
    expect(await post(url, '{"text":"x"}')).toMatchObject({ status: 200 })
    expect(lines.filter((line) => line.level !== 'debug')).toEqual([])
  })

  it('large bodies beyond the limit of bytes in progress get 503 with Retry-After until others are answered', async () => {
    const large = { ...echo, bodyBytesMax: 64_000_000 }
    const { port, url } = await startEcho({ bodyBytesMax: 64_000_000 }, { routes: [large] })
    const head = (length: number) =>
      `POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`
    const holding = await connectRaw(port)
    holding.write(`${head(64_000_000)}{`)
    // The server has read the first request before this one is answered.
    expect((await post(url, '{"text":"x"}')).status).toBe(200)
    const second = await connectRaw(port)
    second.write(`${head(60_000_000)}{`)
    const refused = await second.readTo('}}')
    expect(refused).toMatch(/^HTTP\/1\.1 503 /)
    expect(refused).toMatch(/retry-after: 2/i)
    const chunked = await connectRaw(port)
    chunked.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    const part = 'x'.repeat(2 ** 20)
    for (let mib = 0; mib < 50; mib++) chunked.write(`100000\r\n${part}\r\n`)
    expect(await chunked.readTo('}}')).toMatch(/^HTTP\/1\.1 503 .*SERVER_OVERLOADED/s)
    const small = await connectRaw(port)
    small.write(`${head(12)}{"text":"x"}`)
    expect(await small.readTo('}')).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('only some large bodies are read and handled at the same time, and the others wait', async () => {
    const handled: (() => void)[] = []
    const hanging = {
      ...echo,
      bodyBytesMax: 2_000_000,
      handler: async () => {
        await new Promise<void>((resolve) => handled.push(resolve))
        return { length: 0 }
      },
    }
    const { url } = await startEcho({ bodyBytesMax: 2_000_000 }, { routes: [hanging] })
    const isReached = async (count: number) =>
      pollUntil(
        async () => handled.length,
        (length) => length === count,
      )
    const answers = Array.from({ length: bodiesReadMax + 1 }, () => post(url, createBody(largeBodyBytes)))
    await isReached(bodiesReadMax)
    // A small body is handled, so the server has had the time to handle the last large one.
    const small = post(url, createBody(100))
    await isReached(bodiesReadMax + 1)
    handled[bodiesReadMax]?.()
    expect((await small).status).toBe(200)
    handled[0]?.()
    await isReached(bodiesReadMax + 2)
    for (const answer of handled) answer()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(
      Array(bodiesReadMax + 1).fill(200),
    )
  })

  it('a JSON body without payloads is refused if it has too many values, before it is parsed', async () => {
    const { url } = await startEcho({}, { routes: [{ ...echo, bodyBytesMax: 1_000_000 }] })
    expect(await post(url, `{"text":[${'1,'.repeat(plainJsonValuesMax)}1]}`)).toMatchObject({
      status: 400,
      body: { error: { message: `the body has more than ${plainJsonValuesMax} JSON values; send fewer` } },
    })
  })

  /** A route whose answers end when the test says so, and what says so. */
  const createHanging = (answerKind: AnswerKind) => {
    const waiting: (() => void)[] = []
    const hanging = route({
      method: 'GET',
      path: '/hanging',
      operationId: 'hanging',
      permission: 'public',
      summary: 'Answers when the test says so.',
      tag: 'server',
      dialect: v1,
      answerKind,
      schema: { response: { 200: Type.Object({}) } },
      handler: async () => {
        await new Promise<void>((resolve) => waiting.push(resolve))
        return {}
      },
    })
    const isReached = async (count: number) =>
      pollUntil(
        async () => waiting.length,
        (length) => length === count,
      )
    return { hanging, waiting, isReached }
  }

  it('only some large answers are in progress at the same time, and the others wait', async () => {
    const { hanging, waiting, isReached } = createHanging('large')
    const { url } = await startEcho({}, { routes: [hanging, echo] })
    const answers = Array.from({ length: answersMax.large + 1 }, () => fetch(`${url}/hanging`))
    await isReached(answersMax.large)
    // Another request is answered, so the server has had the time to handle the last large answer.
    expect((await post(url, createBody(100))).status).toBe(200)
    expect(waiting).toHaveLength(answersMax.large)
    waiting[0]?.()
    await isReached(answersMax.large + 1)
    for (const answer of waiting) answer()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses).toEqual(Array(answersMax.large + 1).fill(200))
  })

  it('only some exports are in progress at the same time', async () => {
    const { hanging, waiting, isReached } = createHanging('export')
    const { url } = await startEcho({}, { routes: [hanging] })
    const first = Array.from({ length: answersMax.export }, () => fetch(`${url}/hanging`))
    await isReached(answersMax.export)
    const refused = await fetch(`${url}/hanging`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
    for (const answer of waiting.splice(0)) answer()
    for (const answer of await Promise.all(first)) expect((await answer.json()) as object).toEqual({})
    const next = fetch(`${url}/hanging`)
    await isReached(1)
    waiting[0]?.()
    expect((await next).status).toBe(200)
  })

  it('health checks are answered while all connections are in use, and other requests get 503', async () => {
    const healthz = route({
      method: 'GET',
      path: '/healthz',
      operationId: 'healthz',
      permission: 'public',
      summary: 'Answers.',
      tag: 'server',
      dialect: v1,
      schema: { response: { 200: Type.Object({}) } },
      handler: () => ({}),
    })
    const { port } = await startEcho({ connectionsMax: 2 }, { routes: [echo, healthz] })
    for (let connection = 0; connection < 2; connection++) {
      const busy = await connectRaw(port)
      busy.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{')
    }
    for (let check = 0; check < 20; check++) {
      const probe = await connectRaw(port)
      probe.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
      expect(await probe.readToEnd()).toMatch(/^HTTP\/1\.1 200 /)
    }
    const other = await connectRaw(port)
    other.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n{"text":"x"}')
    expect(await other.readToEnd()).toMatch(/^HTTP\/1\.1 503 .*SERVER_OVERLOADED/s)
  })

  it('a connection that was idle gives its place to a new one', async () => {
    const { port } = await startEcho({ connectionsMax: 2 })
    const silent = [await connectRaw(port), await connectRaw(port)]
    const request = 'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n{"text":"x"}'
    await pollUntil(
      async () => {
        const next = await connectRaw(port)
        next.write(request)
        const answer = await next.readTo('}')
        next.socket.destroy()
        return answer
      },
      (answer) => answer.startsWith('HTTP/1.1 200 '),
    )
    expect(
      silent.filter(({ socket }) => socket.destroyed || socket.readableEnded).length,
    ).toBeLessThanOrEqual(2)
  })
})
