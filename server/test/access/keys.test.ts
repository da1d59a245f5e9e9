import { expect, it } from 'vitest'
import { bearer, describeKeysServer } from './keys-server.ts'

describeKeysServer('a server that requires keys', 'SQLite memory', {}, (server) => {
  const letters = (headers: Record<string, string> = {}) =>
    server.request('GET', '/api/v1/letters', undefined, headers)
  const listQueues = (headers: Record<string, string> = {}) =>
    server.request('POST', '/v1/queues.list', {}, headers)

  it('the first start creates an administrator, whose key works and is not logged', async () => {
    expect(server.adminKey).toMatch(/^qtr-admin-[0-9A-Za-z]{43}$/)
    expect((await letters(bearer(server.adminKey))).status).toBe(200)
    expect(JSON.stringify(server.lines)).not.toContain(server.adminKey)
    const { items } = await server.admin('/v1/rolebindings.list', { user_id_filter: 'anonymous' })
    expect(items ?? []).toEqual([])
  })

  it('a key is accepted as Bearer, as ApiKey and as X-API-Key, with any case of the scheme', async () => {
    const { key } = await server.createKey({ roles: ['Viewer'] })
    for (const headers of [
      { authorization: `Bearer ${key}` },
      { authorization: `bearer ${key}` },
      { authorization: `ApiKey ${key}` },
      { 'x-api-key': key },
    ]) {
      expect((await letters(headers)).status).toBe(200)
    }
  })

  it('a missing credential is 401 with WWW-Authenticate, a wrong one 403, and a missing permission 403', async () => {
    const missing = await letters()
    expect([missing.status, missing.body.error.code]).toEqual([401, 'CREDENTIAL_MISSING'])
    expect(missing.headers.get('www-authenticate')).toBe('Bearer realm="redrive"')
    const wrong = await letters(bearer(`qtr-live-${'0'.repeat(43)}`))
    expect([wrong.status, wrong.body.error.code]).toEqual([403, 'CREDENTIAL_REFUSED'])
    const { key } = await server.createKey({ roles: ['PublicViewer'] })
    const denied = await letters(bearer(key))
    expect([denied.status, denied.body.error.code]).toEqual([403, 'ACCESS_DENIED'])
    expect(denied.body.error.message).toContain('letter.read')
  })

  it('the Queue API answers with the codes and messages of its contract', async () => {
    const { key, id } = await server.createKey({ roles: ['Viewer'] })
    const expired = await server.createKey({ roles: ['Viewer'], expiresAt: '2020-01-01T00:00:00Z' })
    const refusal = async (headers: Record<string, string>) => {
      const { status, body } = await listQueues(headers)
      return [status, body.code, body.message]
    }
    expect((await listQueues(bearer(key))).status).toBe(200)
    expect(await refusal({})).toEqual([403, 403, 'access denied'])
    expect(await refusal({ authorization: 'Basic YTpi' })).toEqual([
      401,
      401,
      'invalid authorization header format',
    ])
    expect(await refusal(bearer('nonsense'))).toEqual([401, 401, 'api key is invalid'])
    expect(await refusal(bearer(`${key.slice(0, -1)}!`))).toEqual([401, 401, 'api key is invalid'])
    expect(await refusal(bearer(`qtr-live-${'0'.repeat(43)}`))).toEqual([401, 401, 'api key does not exist'])
    expect(await refusal(bearer(expired.key))).toEqual([401, 401, 'api key has expired'])
    const create = await server.request('POST', '/v1/users.create', { username: 'x' }, bearer(key))
    expect([create.status, create.body.message]).toEqual([403, 'access denied'])
    await server.admin('/v1/apikeys.delete', { id })
    expect(await refusal(bearer(key))).toEqual([401, 401, 'api key does not exist'])
  })

  it('each dead letter API renders the refusal in its own format', async () => {
    const management = await server.request('GET', '/api/v1/dlq')
    expect([management.status, management.body.error.code]).toEqual([401, 'AUTH_REQUIRED'])
    const topics = await server.request('GET', '/api/v1/dlq/orders')
    expect([topics.status, topics.body.error.code]).toEqual([401, 'SYS_AUTH_UNAUTHORIZED'])
    const wrong = await server.request('GET', '/api/v1/dlq/orders', undefined, bearer('nonsense'))
    expect([wrong.status, wrong.body.error.code]).toEqual([403, 'SYS_AUTH_PERMISSION_DENIED'])
  })

  it('health, metrics and pages need no credential', async () => {
    for (const path of ['/health', '/healthz', '/readyz', '/metrics', '/', '/openapi.json']) {
      expect((await fetch(server.url + path)).status).toBe(200)
    }
  })

  it('a role works in the namespace of its binding, and a key not outside of its scope', async () => {
    await server.admin('/v1/namespaces.create', { name: 'shop' })
    await server.admin('/v1/namespaces.create', { name: 'mill' })
    const owner = await server.createKey({ roles: ['shop:NamespaceOwner'] })
    const scoped = await server.createKey({ roles: ['NamespaceOwner'], scope: 'shop' })
    const create = async (key: string, namespace: string) => {
      const role = { namespace, name: `r-${Math.random()}`, permissions: [] }
      return (await server.request('POST', '/v1/roles.create', role, bearer(key))).status
    }
    for (const { key } of [owner, scoped]) {
      expect(await create(key, 'shop')).toBe(200)
      expect(await create(key, 'mill')).toBe(403)
      expect(await create(key, 'no-such-namespace')).toBe(403)
    }
    expect(await create(owner.key, '_system')).toBe(403)
  })

  it('a role that is bound in a namespace gives no permission over users, keys and namespaces', async () => {
    await server.admin('/v1/namespaces.create', { name: 'small' })
    const { key, userId } = await server.createKey({ roles: ['small:Admin'] })
    for (const [path, body] of [
      ['/v1/users.create', { username: 'y' }],
      ['/v1/apikeys.create', { user_id: userId, name: 'z' }],
      ['/v1/namespaces.create', { name: 'other' }],
    ] as const) {
      expect((await server.request('POST', path, body, bearer(key))).status).toBe(403)
    }
  })

  it('deleting a user, a binding or a key takes effect with the next request', async () => {
    const status = async (key: string) => (await letters(bearer(key))).status
    const bound = await server.createKey({ roles: ['Viewer'] })
    expect(await status(bound.key)).toBe(200)
    const binding = { namespace: '_system', role_name: 'Viewer', user_id: bound.userId }
    await server.admin('/v1/rolebindings.delete', binding)
    expect(await status(bound.key)).toBe(403)
    await server.admin('/v1/rolebindings.create', binding)
    expect(await status(bound.key)).toBe(200)
    await server.admin('/v1/users.delete', { id: bound.userId })
    const gone = await letters(bearer(bound.key))
    expect(gone.body.error.code).toBe('CREDENTIAL_REFUSED')
  })
})

describeKeysServer(
  'the limit of failed attempts',
  'SQLite memory',
  { 'auth.failed_attempts_max': 3 },
  (server) => {
    it('an address that sent too many wrong keys is refused with 429, except with keys that were used before', async () => {
      const used = await server.createKey({ roles: ['Viewer'] })
      const unused = await server.createKey({ roles: ['Viewer'] })
      const send = async (key: string) => server.request('GET', '/api/v1/queues', undefined, bearer(key))
      expect((await send(used.key)).status).toBe(200)
      for (let count = 0; count < 3; count++) expect((await send(`wrong-${count}`)).status).toBe(403)
      const blocked = await send('wrong-4')
      expect([blocked.status, blocked.body.error.code]).toEqual([429, 'TOO_MANY_FAILED_ATTEMPTS'])
      expect(blocked.headers.get('retry-after')).toBe('60')
      expect((await send(unused.key)).status).toBe(429)
      expect((await send(used.key)).status).toBe(200)
      const queueApi = await server.request('POST', '/v1/queues.list', {}, bearer('wrong'))
      expect([queueApi.status, queueApi.body.code_text]).toEqual([429, 'Too Many Requests'])
    })
  },
)

const unlimited = { 'auth.failed_attempts_max': 100_000 }

describeKeysServer('two servers on one PostgreSQL', 'PostgreSQL', unlimited, (server) => {
  it('a revoked key is refused by every server once the revocation is answered', async () => {
    const other = await server.startAnother()
    const status = async (base: string, key: string) =>
      (await fetch(`${base}/api/v1/queues`, { headers: bearer(key) })).status
    for (let round = 0; round < 3; round++) {
      const { key, id } = await server.createKey({ roles: ['Viewer'] })
      expect([await status(server.url, key), await status(other, key)]).toEqual([200, 200])
      // Requests keep the key in the memory of both servers until the revocation is answered.
      let isRevoked = false
      const traffic = (async () => {
        while (!isRevoked) await Promise.all([status(server.url, key), status(other, key)])
      })()
      await server.admin('/v1/apikeys.delete', { id })
      expect([await status(server.url, key), await status(other, key)]).toEqual([403, 403])
      isRevoked = true
      await traffic
    }
  })
})
