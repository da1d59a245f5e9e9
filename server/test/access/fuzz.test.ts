/**
 * Sends hostile requests to every route of a server that requires keys, as the administrator, as a tenant and
 * without a key. No answer is 500, none shows the secrets of another tenant, a path or a statement, and
 * nothing of the other tenant changes.
 *
 * REDRIVE_FUZZ_ROUTES sets how many requests each route gets from each caller (`npm run fuzz:routes`: 300).
 * REDRIVE_TEST_SEED repeats a run.
 */
import { request as sendHttp } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Route } from '../../src/api/http/route.ts'
import { routes } from '../../src/api/routes.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { withRandom } from '../random-test.ts'
import { createHostileRequest, type HostileRequest } from './hostile-requests.ts'
import { bearer, describeKeysServer } from './keys-server.ts'

/** Returns all that the server sends before it closes the connection. */
async function sendRaw(url: string, text: string): Promise<string> {
  const connection = await connectRaw(Number(new URL(url).port))
  connection.write(text)
  return connection.readToEnd()
}

const requestsPerRoute = Number(process.env.REDRIVE_FUZZ_ROUTES ?? 4)
const secret = 'qzx-secret-of-north'

/** Routes that wait or do not end; they have tests of their own. */
const isLong = ({ path }: Route): boolean => /\/events$|queue\.lease$/.test(path)

describe.each(['SQLite memory', 'PostgreSQL'] as const)('%s', (store) => {
  const settings = { 'auth.failed_attempts_max': 1_000_000, 'log.level': 'error' } as const
  describeKeysServer('hostile requests', store, settings, (server) => {
    let southKey = ''

    const send = (sent: HostileRequest, key: string) =>
      new Promise<Readonly<{ status: number; text: string; headers: Readonly<Record<string, unknown>> }>>(
        (resolve, reject) => {
          const { hostname, port } = new URL(server.url)
          const headers = { ...sent.headers, ...(key !== '' && bearer(key)) }
          const options = {
            hostname,
            port,
            path: sent.path,
            method: sent.method,
            headers,
            timeout: 20_000,
            agent: false,
          }
          const open = sendHttp(options, async (response) => {
            const parts = await response.toArray()
            const text = Buffer.concat(parts).toString('latin1')
            resolve({ status: response.statusCode ?? 0, text, headers: response.headers })
          })
          open.on('timeout', () => open.destroy(new Error(`no answer from ${sent.method} ${sent.path}`)))
          open.on('error', reject)
          open.end(sent.body)
        },
      )

    const expectHarmless = async (sent: HostileRequest, key: string, mayReadNorth: boolean) => {
      const answer = await send(sent, key)
      const described = `${sent.method} ${sent.path} ${JSON.stringify(sent.headers)} ${sent.body ?? ''}`
      expect(answer.status, `${described}: ${answer.text}`).not.toBe(500)
      expect(Object.keys(answer.headers), described).not.toContain('x-evil')
      expect(JSON.stringify(answer.headers['set-cookie'] ?? ''), described).not.toContain('evil')
      expect(answer.text, described).not.toMatch(
        /node_modules|server\/src|at async|syntax error|SQLITE_|pg_catalog/,
      )
      if (!mayReadNorth) expect(answer.text, described).not.toContain(secret)
    }

    beforeAll(async () => {
      for (const name of ['north', 'south']) await server.admin('/v1/namespaces.create', { name })
      const north = await server.createKey({ roles: ['north:Admin'] })
      southKey = (await server.createKey({ roles: ['south:Admin'] })).key
      const sent = { name: 'north-dead', namespace: 'north', policy: { reference: secret } }
      expect((await server.request('POST', '/api/v1/queues', sent, bearer(north.key))).status).toBe(200)
      const letters = [{ original_topic: secret, original_value: secret, error_details: { message: secret } }]
      const captured = { queue: 'north-dead', letters }
      const answer = await server.request('POST', '/api/v1/letters', captured, bearer(north.key))
      expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    })

    it.each([
      ['a tenant', (): string => southKey, false],
      ['nobody', (): string => '', false],
      ['the administrator', (): string => server.adminKey, true],
    ] as const)('no route harms or leaks when %s sends hostile requests', async (_, readKey, mayRead) => {
      await withRandom(async (random) => {
        // The administrator may delete everything: in the end there would be nothing to protect.
        const isTried = (row: Route): boolean =>
          !isLong(row) && !(mayRead && row.method !== 'GET' && /delete|purge|clear/i.test(row.path))
        const requests: readonly HostileRequest[] = routes
          .filter(isTried)
          .flatMap((row) => Array.from({ length: requestsPerRoute }, () => createHostileRequest(row, random)))
        const failures: string[] = []
        for (const request of requests) {
          try {
            await expectHarmless(request, readKey(), mayRead)
          } catch (error) {
            failures.push(`${request.method} ${request.path}: ${error}`.slice(0, 1_000))
          }
        }
        expect(failures.slice(0, 20)).toEqual([])
      })
    })

    it('nothing of the other tenant has changed, and the audit log has only true rows', async () => {
      const queue = await server.request(
        'GET',
        '/api/v1/queues/north-dead',
        undefined,
        bearer(server.adminKey),
      )
      expect(queue.body).toMatchObject({ namespace: 'north', policy: { reference: secret } })
      const errors = server.lines.filter(({ level }) => Number(level) >= 50)
      expect(errors).toEqual([])
    })
  })
})

describeKeysServer(
  'hostile connections',
  'SQLite memory',
  { 'auth.failed_attempts_max': 1_000_000 },
  (server) => {
    const b64 = (value: object | string) =>
      Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
    const token = (header: object, claims: object, signature = 'x') =>
      `${b64(header)}.${b64(claims)}.${signature}`
    const claims = { iss: 'x', aud: 'redrive', sub: 'admin', exp: 4_102_444_800, roles: ['Admin'] }

    it.each([
      ['a token with alg none', token({ alg: 'none', typ: 'JWT' }, claims, '')],
      ['a token signed with a shared secret', token({ alg: 'HS256', typ: 'JWT' }, claims)],
      ['a token of another audience', token({ alg: 'RS256', kid: 'a' }, { ...claims, aud: 'other' })],
      ['an expired token', token({ alg: 'RS256', kid: 'a' }, { ...claims, exp: 1 })],
      ['a huge token', token({ alg: 'RS256', kid: 'a' }, { ...claims, x: 'y'.repeat(11_000) })],
      ['a token whose parts are no JSON', `${b64('{')}.${b64('[')}.${b64('x')}`],
      [
        'a token with a key of its own',
        token({ alg: 'RS256', jwk: { kty: 'RSA', n: 'AQAB', e: 'AQAB' } }, claims),
      ],
      ['a token with a path as key id', token({ alg: 'RS256', kid: '../../etc/passwd' }, claims)],
      ['a key with a wrong last character', `qtr-live-${'A'.repeat(43)}`],
      ['a key that is too long', `qtr-live-${'A'.repeat(11_000)}`],
      ['a key with a statement', `qtr-live-${"' or 1=1 --".replaceAll(' ', '')}`],
      ['a very long text', 'x'.repeat(15_000)],
    ])('%s is refused with 403', async (_, text) => {
      const answer = await server.request('GET', '/api/v1/queues', undefined, bearer(text))
      expect(answer.status).toBe(403)
      expect(JSON.stringify(answer.body)).not.toContain(text.slice(-20))
    })

    it.each([
      '/../../etc/passwd',
      '/assets/../../../package.json',
      '/assets/..%2f..%2f..%2fpackage.json',
      '/assets/%2e%2e/%2e%2e/package.json',
      '/assets/%252e%252e%252fpackage.json',
      '/docs/..%5c..%5cpackage.json',
      '/docs/%00',
      '//etc/passwd',
      '/api/v1/../../internal/v1/dlq',
      '/api/v1/queues/%2e%2e%2f%2e%2e',
      '/%2fapi%2fv1%2fqueues',
      '/api/v1/queues;admin=1',
      '/api/v1/queues%00',
      '/API/V1/QUEUES',
    ])('the path %s shows no file and passes no check', async (path) => {
      const answer = await sendRaw(server.url, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1\.1 (400|401|404|405)/)
      expect(answer).not.toMatch(/root:|"dependencies"|"queues":/)
    })

    it.each([
      [
        'headers of 100 KB',
        `GET /api/v1/queues HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(100_000)}\r\n\r\n`,
      ],
      ['thousands of headers', `GET /api/v1/queues HTTP/1.1\r\nHost: x\r\n${'A: b\r\n'.repeat(5_000)}\r\n`],
      ['a path of 100 KB', `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
      ['a header with a control character', 'GET /api/v1/queues HTTP/1.1\r\nHost: x\r\nX: a\u0001b\r\n\r\n'],
      [
        'two lengths',
        'POST /api/v1/queues HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      ],
      [
        'a length and chunks',
        'POST /api/v1/queues HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      ],
    ])('a request with %s is refused, and the server goes on', async (_, text) => {
      const answer = await sendRaw(server.url, text)
      expect(answer).toMatch(/^HTTP\/1\.1 4\d\d/)
      expect((await server.request('GET', '/api/v1/queues', undefined, bearer(server.adminKey))).status).toBe(
        200,
      )
    })
  },
)
