import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAccess } from '../../src/access/create-access.ts'
import { prepareAccess } from '../../src/access/first-start.ts'
import { createAuthorize } from '../../src/api/http/access/authorize.ts'
import { noProxies, parseNetworks } from '../../src/api/http/access/client-address.ts'
import { route } from '../../src/api/http/route.ts'
import { v1 } from '../../src/api/v1/dialect.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { sendRequest } from '../http/store-server.ts'
import { startTestApi } from '../http/test-api.ts'

const createRoute = (path: `/${string}`) =>
  route({
    method: 'GET',
    path,
    operationId: path.includes('internal') ? 'getInternal' : 'getOther',
    permission: 'system.read',
    summary: 'A route.',
    tag: 'test',
    dialect: v1,
    schema: { response: { 200: Type.Object({ is: Type.String() }) } },
    handler: async ({ caller }) => ({ is: caller.name }),
  })

describe('the internal paths', () => {
  let key = ''
  const refusals: string[] = []
  let close: () => Promise<void>
  let access: ReturnType<typeof createAccess>
  beforeAll(async () => {
    const storage = await openStorage({ kind: 'memory' })
    const { clock } = storage
    const engine = createEngine(storage, { clock, isTicking: false })
    key = (await prepareAccess({ storage, engine, clock }, true)) ?? ''
    access = createAccess({ storage, engine, clock, sessionMs: 1_000, failedAttemptsMax: 100 })
    close = async () => {
      await engine.close()
      await storage.close()
    }
  })
  afterAll(() => close())

  const start = async (networks: readonly string[]) => {
    const authorize = createAuthorize({
      access: () => access,
      isReadOnly: false,
      proxies: noProxies,
      isSecure: () => false,
      internal: {
        networks: parseNetworks(networks) ?? noProxies,
        onRefused: (reason) => refusals.push(reason),
      },
    })
    const routes = [createRoute('/internal/v1/thing'), createRoute('/api/v1/thing')]
    const { url } = await startTestApi({ routes, authorize })
    return (path: string, headers: Record<string, string>) =>
      sendRequest(url + path, 'GET', undefined, headers)
  }

  it('X-Internal-Api-Key is accepted on internal paths only', async () => {
    const get = await start(['127.0.0.0/8'])
    const headers = { 'x-internal-api-key': key }
    expect(await get('/internal/v1/thing', headers)).toMatchObject({ status: 200, body: { is: 'admin' } })
    expect((await get('/api/v1/thing', headers)).status).toBe(401)
    expect((await get('/internal/v1/thing', { 'x-internal-api-key': 'wrong' })).status).toBe(403)
    expect((await get('/internal/v1/thing', {})).status).toBe(401)
    expect(refusals.splice(0)).toEqual(['invalid_key'])
  })

  it('an address outside of the internal networks is refused, whatever its key', async () => {
    const get = await start(['10.0.0.0/8'])
    const answer = await get('/internal/v1/thing', { authorization: `Bearer ${key}` })
    expect([answer.status, answer.body.error.code]).toEqual([403, 'ACCESS_DENIED'])
    expect((await get('/api/v1/thing', { authorization: `Bearer ${key}` })).status).toBe(200)
    expect(refusals.splice(0)).toEqual(['ip_denied'])
  })

  it.each(['/internal/%76%31/thing', '/%69nternal/v1/thing', '/internal/v1/%74hing'])(
    'the path %s is an internal path, too',
    async (path) => {
      const get = await start(['10.0.0.0/8'])
      const answer = await get(path, { authorization: `Bearer ${key}` })
      expect(answer.status).toBe(403)
      expect(refusals.splice(0)).toEqual(['ip_denied'])
    },
  )
})
