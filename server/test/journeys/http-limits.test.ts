import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import type { ApiParts } from '../../src/api/create-api.ts'
import { type HttpLimits, toHttpLimits } from '../../src/api/http/http-limits.ts'
import { route } from '../../src/api/http/route.ts'
import { v1 } from '../../src/api/v1/dialect.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { startTestApi } from '../http/test-api.ts'
import { testSettings } from '../http/test-server.ts'

const echo = route({
  method: 'POST',
  path: '/echo',
  permission: 'public',
  summary: 'Says how much it got.',
  tag: 'server',
  dialect: v1,
  bodyBytesMax: 1_000,
  schema: {
    body: Type.Object({ text: Type.String() }, { additionalProperties: false }),
    response: { 200: Type.Object({ length: Type.Integer() }) },
  },
  handler: ({ body }) => ({ length: body.text.length }),
})

function start(limits: Partial<HttpLimits> = {}, over: Partial<ApiParts> = {}) {
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

const bodyOf = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes - 11) })

describe('the bounds of a request', () => {
  it('take a body of exactly the bound, and refuse one byte more', async () => {
    const { url } = await start()
    expect(await post(url, bodyOf(1_000))).toEqual({ status: 200, body: { length: 989 } })
    expect(await post(url, bodyOf(1_001))).toMatchObject({
      status: 413,
      body: {
        error: { code: 'BODY_TOO_LARGE', message: 'the request body exceeds the limit of 1000 bytes' },
      },
    })
  })

  it('refuse a body that is too large although it does not say how large it is', async () => {
    const { port } = await start()
    const raw = await connectRaw(port)
    raw.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    raw.write(`7d0\r\n${'x'.repeat(2_000)}\r\n`)
    expect(await raw.readTo('}}')).toMatch(/^HTTP\/1\.1 413 /)
    // What it still sends is read and forgotten, and the connection serves on.
    raw.write(`7d0\r\n${'x'.repeat(2_000)}\r\n0\r\n\r\n`)
    raw.write('GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await raw.readTo('}}')).toMatch(/HTTP\/1\.1 405 /)
  })

  it('let every client read why its body is refused, however large it is', async () => {
    const { url } = await start()
    for (let round = 0; round < 5; round++) {
      for (const bytes of [100_000, 3_000_000, 30_000_000]) {
        expect(await post(url, bodyOf(bytes))).toMatchObject({
          status: 413,
          body: { error: { code: 'BODY_TOO_LARGE' } },
        })
      }
    }
  })

  it('cut who does not end the body that was refused', async () => {
    const { port } = await start()
    const raw = await connectRaw(port)
    raw.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nxxx')
    expect(await raw.readToEnd()).toMatch(/^HTTP\/1\.1 413 /)
  })

  it("hold a path's own bound below the server's", async () => {
    const { url } = await start({ bodyBytesMax: 100 })
    expect(await post(url, bodyOf(101))).toMatchObject({ status: 413 })
  })

  it.each([100, 101, 200])('refuse %i headers beside Host', async (count) => {
    const { port } = await start()
    const raw = await connectRaw(port)
    const headers = Array.from({ length: count }, (_, number) => `A${number}: 1\r\n`).join('')
    raw.write(`GET /echo HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`)
    expect(await raw.readTo('}}')).toMatch(/^HTTP\/1\.1 431 [\s\S]*more than 100 headers/)
  })

  it('refuse headers that are too large or too slow', async () => {
    const { port } = await start({ headerBytesMax: 2_000, headersMsMax: 150, requestMsMax: 300 })
    const large = await connectRaw(port)
    large.write(`GET /echo HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(2_000)}\r\n\r\n`)
    expect(await large.readToEnd()).toMatch(/^HTTP\/1\.1 431 [\s\S]*"code":"HEADERS_TOO_LARGE"/)

    const slow = await connectRaw(port)
    slow.write('GET /echo HTTP/1.1\r\nHost: localhost\r\n')
    expect(await slow.readToEnd()).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"REQUEST_TIMEOUT"/)
  })

  it('refuse a body that does not arrive in time', async () => {
    const { port } = await start({ headersMsMax: 100, requestMsMax: 200 })
    const raw = await connectRaw(port)
    raw.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"text":')
    expect(await raw.readToEnd()).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"REQUEST_TIMEOUT"/)
  })

  it('close a connection that never says anything', async () => {
    const { port } = await start({ headersMsMax: 100, requestMsMax: 200 })
    const raw = await connectRaw(port)
    expect(await raw.readToEnd()).toMatch(/^HTTP\/1\.1 408 /)
  })

  it('refuse a URL that is too long', async () => {
    const { url } = await start({ urlBytesMax: 100 })
    const answer = await fetch(`${url}/echo?${'x'.repeat(200)}`, { method: 'POST' })
    expect([answer.status, await answer.json()]).toMatchObject([414, { error: { code: 'URL_TOO_LONG' } }])
  })

  it('close connections beyond their number at once, and say so in the log', async () => {
    const { port, lines } = await start({ connectionsMax: 2 })
    const kept = [await connectRaw(port), await connectRaw(port)]
    const dropped = await connectRaw(port)
    expect(await dropped.readToEnd()).toBe('')
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', connections_max: 2 }))
    kept[0]?.write('GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(await kept[0]?.readToEnd()).toMatch(/^HTTP\/1\.1 405 /)
  })

  it('do not end an answer that takes its time', async () => {
    let finish: (answer: { length: number }) => void = () => {}
    let called: () => void = () => {}
    const whenCalled = new Promise<void>((resolve) => (called = resolve))
    const poll = {
      ...echo,
      handler: () => {
        called()
        return new Promise<never>((resolve) => (finish = resolve as never))
      },
    }
    const { url, port } = await start({ headersMsMax: 50, requestMsMax: 100 }, { routes: [poll] })
    const polling = post(url, '{"text":""}')
    await whenCalled
    // By the time this one is closed for its silence, the bounds of the first are long over.
    await (await connectRaw(port)).readToEnd()
    await (await connectRaw(port)).readToEnd()
    finish({ length: 7 })
    expect(await polling).toEqual({ status: 200, body: { length: 7 } })
  })
})

describe('what is not a proper request', () => {
  it.each([
    ['GARBAGE\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: 1\r\n\r\n', 400],
    ['POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n', 400],
    ['GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 400],
    ['GET /echo%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 404],
    ['BREW /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 400],
    ['PROPFIND /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 405],
  ])('is answered as the mistake it is: %j', async (text, status) => {
    const { port } = await start()
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
  ])('is refused by what is wrong with its body: %j %j', async (body, headers, status, code) => {
    const { url, lines } = await start()
    const answer = await post(url, body, headers as Record<string, string>)
    expect([answer.status, (answer.body as { error?: { code: string } }).error?.code]).toEqual([status, code])
    expect(lines.filter((line) => line.level === 'error')).toEqual([])
  })

  it('is refused when its text is not UTF-8', async () => {
    const { url } = await start()
    expect(await post(url, Buffer.from([0x7b, 0xff, 0x7d]))).toMatchObject({ status: 400 })
  })

  it('leaves no error in the log when a client goes away in the middle of its body', async () => {
    const { port, url, lines } = await start()
    const raw = await connectRaw(port)
    raw.write('POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"text":')
    raw.socket.destroy()
    expect(await post(url, '{"text":"x"}')).toMatchObject({ status: 200 })
    expect(lines.filter((line) => line.level !== 'debug')).toEqual([])
  })
})
