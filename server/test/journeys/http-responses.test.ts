import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { dlqManagement, dlqMessages } from '../../src/api/dlq/dialects.ts'
import type { Dialect } from '../../src/api/http/answers/dialect.ts'
import { toHttpLimits } from '../../src/api/http/connections/http-limits.ts'
import { type Authorize, allowAll } from '../../src/api/http/permission.ts'
import { type Route, route } from '../../src/api/http/route.ts'
import { queueApi } from '../../src/api/queue/protocol/dialect.ts'
import { routes } from '../../src/api/routes.ts'
import { v1 } from '../../src/api/v1/dialect.ts'
import { errorCodes, KnownError } from '../../src/errors.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { startTestApi } from '../http/test-api.ts'
import { startTestServer, testSettings } from '../http/test-server.ts'

function createRoute(over: Partial<Route>): Route {
  return {
    ...route({
      method: 'GET',
      path: '/thing',
      operationId: 'thing',
      permission: 'system.info',
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

describe('every response', () => {
  it('every response carries the request id, either a valid id from the client or a new id', async () => {
    const { url } = await startTestApi()
    const given = await get(`${url}/api/v1/info`, { headers: { 'X-Request-ID': 'trace-7' } })
    expect(given.headers.get('x-request-id')).toBe('trace-7')
    const invalid = await get(`${url}/nope`, { headers: { 'X-Request-ID': '<script>' } })
    expect(invalid.headers.get('x-request-id')).toMatch(/^[0-9a-v]{20}$/)
    expect(invalid.body.error.request_id).toBe(invalid.headers.get('x-request-id'))
  })

  it('a response keeps the connection open and announces the keep-alive timeout', async () => {
    const { url, port } = await startTestApi()
    const { headers } = await get(`${url}/api/v1/info`)
    expect(headers.get('keep-alive')).toBe('timeout=125')
    const raw = await connectRaw(port)
    for (let times = 0; times < 3; times++) {
      raw.write('HEAD /api/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
      expect(await raw.readTo('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
    }
  })

  it('an idle connection stays open for longer than the timeout of a request', async () => {
    const limits = { ...toHttpLimits(testSettings()), headersMsMax: 50, requestMsMax: 100 }
    const { port } = await startTestApi({ limits })
    const idle = await connectRaw(port)
    idle.write('HEAD /api/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await idle.readTo('\r\n\r\n')
    // The server closes each of these connections at the request timeout, so three timeouts have passed.
    for (let times = 0; times < 3; times++) await (await connectRaw(port)).readToEnd()
    idle.write('HEAD /api/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await idle.readTo('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('the server closes a connection that is idle for longer than the keep-alive timeout', async () => {
    const { port } = await startTestApi({ limits: { ...toHttpLimits(testSettings()), keepAliveMs: 20 } })
    const idle = await connectRaw(port)
    idle.write('HEAD /api/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await idle.readToEnd()).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('every response forbids content type sniffing', async () => {
    const { url } = await startTestApi()
    for (const path of ['/api/v1/info', '/', '/nope']) {
      expect((await fetch(url + path)).headers.get('x-content-type-options')).toBe('nosniff')
    }
  })
})

describe('a request that cannot be served', () => {
  it('a request for an unknown path gets 404', async () => {
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
    '%s on a path that supports only GET gets 405 and an Allow header',
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

  it('the Allow header lists every method of a path', async () => {
    const { url } = await startTestApi({ routes: [createRoute({}), createRoute({ method: 'PUT' })] })
    expect((await get(`${url}/thing`, { method: 'DELETE' })).headers.get('allow')).toBe('GET, HEAD, PUT')
  })

  it('a request with an invalid field gets 400 with the name of the field', async () => {
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

  it('a request without a store gets 503 and a Retry-After header', async () => {
    const { url } = await startTestApi()
    const { status, headers, body } = await get(`${url}/api/v1/queues`)
    expect([status, headers.get('retry-after'), body.error.code]).toEqual([503, '2', 'STORE_UNAVAILABLE'])
  })

  it('an unexpected error is logged with its stack, and its message is not sent to the client', async () => {
    const defect = new TypeError('cannot read secret of undefined')
    const { url, lines } = await startTestApi({
      routes: [createRoute({ handler: () => Promise.reject(defect) })],
    })
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

  const storeErrorCodes = errorCodes.filter((code) => /^(STORE|SCHEMA|SECRET)_/.test(code))
  it.each(storeErrorCodes)('the response to %s does not contain the address of the store', async (code) => {
    const failing = [v1, dlqManagement, dlqMessages, queueApi].map((dialect) =>
      createRoute({
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

  it('errors have the format of the dialect that owns the path, even if the path has no route', async () => {
    const plain: Dialect = {
      ...v1,
      name: 'plain',
      ownsPath: (path) => path.startsWith('/plain'),
      renderError: (error, { method, path }) => ({
        status: error.code === 'NOT_FOUND' ? 501 : 400,
        contentType: 'text/plain',
        body: `${error.code} ${method} ${path}`,
      }),
      checkMediaType: () => undefined,
      parseBody: (bytes) => bytes.toString('latin1'),
    }
    const own = createRoute({
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
  it('the authorize hook is called with the permission of the route before the body is read', async () => {
    const permissions: string[] = []
    const authorize: Authorize = (permission, request) => {
      permissions.push(permission)
      if (request.headers.authorization === undefined)
        throw new KnownError('HOST_REFUSED', 'the caller is not known')
      return allowAll(permission, request)
    }
    const withBody = createRoute({ method: 'POST', handler: ({ caller }) => ({ is: caller.name }) as never })
    const { url } = await startTestApi({ routes: [withBody], authorize })
    const refused = await get(`${url}/thing`, { method: 'POST', body: '{bad' })
    expect(refused.status).toBe(403)
    const allowed = await get(`${url}/thing`, { method: 'POST', headers: { Authorization: 'x' } })
    expect(allowed.body).toEqual({ is: 'anonymous' })
    expect(permissions).toEqual(['system.info', 'system.info'])
  })
})

describe('protected mode', () => {
  it('protected mode refuses a foreign Host and a foreign Origin on every path, including pages and health', async () => {
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

describe('the request log', () => {
  it('requests are logged at debug level, slow requests as warnings, and hot routes not at all', async () => {
    const hot = createRoute({ path: '/hot', isHot: true })
    const slow = createRoute({ path: '/slow', slowMs: -1 })
    const { url, lines } = await startTestApi({ routes: [createRoute({}), hot, slow] })
    for (const path of ['/thing', '/hot', '/slow']) await get(url + path)
    // The server logs a request after its response. The next response proves that the line was written.
    await get(`${url}/thing`)
    const logged = lines
      .filter((line) => line.path !== undefined)
      .map((line) => [line.level, line.path, line.status])
    expect(logged.slice(0, 2)).toEqual([
      ['debug', '/thing', 200],
      ['warn', '/slow', 200],
    ])
  })
})
