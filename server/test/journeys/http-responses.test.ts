import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { dlqManagement, dlqMessages } from '../../src/api/dlq/dialects.ts'
import type { Dialect } from '../../src/api/http/dialect.ts'
import { toHttpLimits } from '../../src/api/http/http-limits.ts'
import { type Authorize, allowAll } from '../../src/api/http/permission.ts'
import { type Route, route } from '../../src/api/http/route.ts'
import { queueApi } from '../../src/api/queue/protocol/dialect.ts'
import { routes } from '../../src/api/routes.ts'
import { v1 } from '../../src/api/v1/dialect.ts'
import { errorCodes, KnownError } from '../../src/errors.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { startTestApi } from '../http/test-api.ts'
import { startTestServer, testSettings } from '../http/test-server.ts'

function aRoute(over: Partial<Route>): Route {
  return {
    ...route({
      method: 'GET',
      path: '/thing',
      permission: 'server.info',
      summary: 'A thing.',
      tag: 'server',
      dialect: v1,
      schema: { response: { 200: Type.Object({ is: Type.String() }) } },
      handler: () => ({ is: 'a thing' }),
    }),
    ...over,
  }
}

type Body = { error: { code: string; request_id: string } }

async function get(url: string, init: RequestInit = {}) {
  const answer = await fetch(url, init)
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Body }
}

describe('every answer', () => {
  it('carries the id of the request: the one it was given, or a new one', async () => {
    const { url } = await startTestApi()
    const given = await get(`${url}/api/v1/info`, { headers: { 'X-Request-ID': 'trace-7' } })
    expect(given.headers.get('x-request-id')).toBe('trace-7')
    const insane = await get(`${url}/nope`, { headers: { 'X-Request-ID': '<script>' } })
    expect(insane.headers.get('x-request-id')).toMatch(/^[0-9a-v]{20}$/)
    expect(insane.body.error.request_id).toBe(insane.headers.get('x-request-id'))
  })

  it('keeps the connection open, and says for how long', async () => {
    const { url, port } = await startTestApi()
    const { headers } = await get(`${url}/api/v1/info`)
    expect(headers.get('keep-alive')).toBe('timeout=125')
    const raw = await connectRaw(port)
    for (let times = 0; times < 3; times++) {
      raw.write('HEAD /api/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
      expect(await raw.readTo('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
    }
  })

  it('leaves an idle connection alone for longer than a request may take', async () => {
    const limits = { ...toHttpLimits(testSettings()), headersMsMax: 50, requestMsMax: 100 }
    const { port } = await startTestApi({ limits })
    const idle = await connectRaw(port)
    idle.write('HEAD /api/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await idle.readTo('\r\n\r\n')
    // Each of these is closed when its time for a request is over; the idle one has seen three of them go.
    for (let times = 0; times < 3; times++) await (await connectRaw(port)).readToEnd()
    idle.write('HEAD /api/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await idle.readTo('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('closes a connection that was idle for its time', async () => {
    const { port } = await startTestApi({ limits: { ...toHttpLimits(testSettings()), keepAliveMs: 20 } })
    const idle = await connectRaw(port)
    idle.write('HEAD /api/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await idle.readToEnd()).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('is never sniffed', async () => {
    const { url } = await startTestApi()
    for (const path of ['/api/v1/info', '/', '/nope']) {
      expect((await fetch(url + path)).headers.get('x-content-type-options')).toBe('nosniff')
    }
  })
})

describe('a request that cannot be served', () => {
  it('gets 404 for a path that is not there', async () => {
    const { url } = await startTestApi()
    expect(await get(`${url}/nope?secret=1`)).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND', message: 'path /nope does not exist', hint: expect.any(String) } },
    })
    const malformed = await fetch(`${url}/nope`, {
      method: 'POST',
      body: '{',
      headers: { 'Content-Type': 'text/x' },
    })
    expect(malformed.status).toBe(404)
  })

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'gets 405 and Allow for %s on a path of GET',
    async (method) => {
      const { url } = await startTestApi()
      const { status, headers, body } = await get(`${url}/api/v1/info`, { method })
      expect([status, headers.get('allow'), body.error.code]).toEqual([
        405,
        'GET, HEAD',
        'METHOD_NOT_ALLOWED',
      ])
    },
  )

  it('lists every method of a path in Allow', async () => {
    const { url } = await startTestApi({ routes: [aRoute({}), aRoute({ method: 'PUT' })] })
    expect((await get(`${url}/thing`, { method: 'DELETE' })).headers.get('allow')).toBe('GET, HEAD, PUT')
  })

  it('is told which field is wrong', async () => {
    const { url } = await startTestApi()
    expect(await get(`${url}/api/v1/queues?limit=1001`)).toMatchObject({
      status: 400,
      body: {
        error: {
          code: 'BAD_REQUEST',
          message: 'query.limit must be <= 1000',
          details: [{ field: 'query.limit', message: 'must be <= 1000' }],
        },
      },
    })
  })

  it('is told to come again when there is no store', async () => {
    const { url } = await startTestApi()
    const { status, headers, body } = await get(`${url}/api/v1/queues`)
    expect([status, headers.get('retry-after'), body.error.code]).toEqual([503, '2', 'STORE_UNAVAILABLE'])
  })

  it('learns nothing of our insides when we fail; the log has it all', async () => {
    const defect = new TypeError('cannot read secret of undefined')
    const { url, lines } = await startTestApi({ routes: [aRoute({ handler: () => Promise.reject(defect) })] })
    const { status, body, headers } = await get(`${url}/thing`)
    expect([status, body.error.code]).toEqual([500, 'INTERNAL'])
    expect(JSON.stringify(body)).not.toContain('secret')
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        request_id: headers.get('x-request-id'),
        err: expect.objectContaining({ type: 'TypeError', stack: expect.stringContaining('read secret') }),
      }),
    )
  })

  const ofTheStore = errorCodes.filter((code) => /^(STORE|SCHEMA|SECRET)_/.test(code))
  it.each(ofTheStore)('is not told where the store is: %s', async (code) => {
    const failing = [v1, dlqManagement, dlqMessages, queueApi].map((dialect) =>
      aRoute({
        path: `/${dialect.name}`,
        dialect,
        handler: () =>
          Promise.reject(new KnownError(code, 'cannot use PostgreSQL at db.internal:5432/redrive')),
      }),
    )
    const { url, lines } = await startTestApi({ routes: failing })
    for (const { path } of failing) {
      const answer = await fetch(url + path)
      expect(answer.status).toBeGreaterThan(453)
      expect(await answer.text()).not.toContain('db.internal')
    }
    expect(lines.filter((line) => JSON.stringify(line).includes('db.internal'))).toHaveLength(failing.length)
  })

  it('is refused in its own dialect, on its routes and beside them', async () => {
    const plain: Dialect = {
      ...v1,
      name: 'plain',
      ownsPath: (path) => path.startsWith('/plain'),
      renderError: (error, { method, path }) => ({
        status: error.code === 'NOT_FOUND' ? 501 : 400,
        contentType: 'text/plain',
        body: `${error.code} ${method} ${path}`,
      }),
      parseBody: (bytes) => bytes.toString('latin1'),
    }
    const own = aRoute({
      method: 'POST',
      path: '/plain.echo',
      dialect: plain,
      bodyBytesMax: 5,
      handler: ({ body }) => ({ is: body }) as never,
    })
    const { url } = await startTestApi({ routes: [...routes, own], dialects: [plain, v1] })
    const text = async (path: string, init: RequestInit) => {
      const answer = await fetch(url + path, init)
      return [answer.status, await answer.text()]
    }
    expect(await text('/plain.echo', { method: 'POST', body: 'hello' })).toEqual([200, '{"is":"hello"}'])
    expect(await text('/plain.echo', { method: 'POST', body: 'hello!' })).toEqual([
      400,
      'BODY_TOO_LARGE POST /plain.echo',
    ])
    expect(await text('/plain.echo?x', {})).toEqual([400, 'METHOD_NOT_ALLOWED GET /plain.echo'])
    expect(await text('/plain.nope', {})).toEqual([501, 'NOT_FOUND GET /plain.nope'])
    expect((await fetch(`${url}/nope`)).status).toBe(404)
  })
})

describe('access control', () => {
  it('is one hook, asked with the permission of the route before the body is read', async () => {
    const asked: string[] = []
    const authorize: Authorize = (permission, request) => {
      asked.push(permission)
      if (request.headers.authorization === undefined) throw new KnownError('HOST_REFUSED', 'who are you?')
      return allowAll(permission, request)
    }
    const withBody = aRoute({ method: 'POST', handler: ({ caller }) => ({ is: caller.name }) as never })
    const { url } = await startTestApi({ routes: [withBody], authorize })
    const refused = await get(`${url}/thing`, { method: 'POST', body: '{bad' })
    expect(refused.status).toBe(403)
    const allowed = await get(`${url}/thing`, { method: 'POST', headers: { Authorization: 'x' } })
    expect(allowed.body).toEqual({ is: 'anonymous' })
    expect(asked).toEqual(['server.info', 'server.info'])
  })
})

describe('protected mode', () => {
  it('refuses a foreign Host and a foreign Origin, also for pages and health', async () => {
    const { url, port } = await startTestServer().then((server) => ({
      ...server,
      port: Number(new URL(server.url).port),
    }))
    for (const path of ['/', '/health', '/api/v1/info', '/nope']) {
      const raw = await connectRaw(port)
      raw.write(`GET ${path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`)
      expect(await raw.readToEnd()).toMatch(/^HTTP\/1\.1 403 [\s\S]*"HOST_REFUSED"/)
      expect((await fetch(url + path, { headers: { Origin: 'https://evil.example' } })).status).toBe(403)
    }
    expect((await fetch(`${url}/health`, { headers: { Origin: url } })).status).toBe(200)
  })
})

describe('the log of requests', () => {
  it('has one line per request at debug, none for hot routes, and a warning for slow ones', async () => {
    const hot = aRoute({ path: '/hot', isHot: true })
    const slow = aRoute({ path: '/slow', slowMs: -1 })
    const { url, lines } = await startTestApi({ routes: [aRoute({}), hot, slow] })
    for (const path of ['/thing', '/hot', '/slow']) await get(url + path)
    // The line is written after the answer; the next answered request proves that it is there.
    await get(`${url}/thing`)
    const told = lines
      .filter((line) => line.path !== undefined)
      .map((line) => [line.level, line.path, line.status])
    expect(told.slice(0, 2)).toEqual([
      ['debug', '/thing', 200],
      ['warn', '/slow', 200],
    ])
  })
})
