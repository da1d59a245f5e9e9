import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { afterAll, expect, it } from 'vitest'
import { bearer, describeKeysServer } from './keys-server.ts'

/** An identity provider with keys that a test replaces. */
async function startProvider() {
  let keys: object[] = []
  const publicKeys: string[] = []
  const server = createServer((request, response) => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const body = request.url === '/keys' ? { keys } : { issuer: url, jwks_uri: `${url}/keys` }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const addKey = async (kid: string) => {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
    keys = [...keys, { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }]
    publicKeys.push(await exportSPKI(publicKey))
    return privateKey
  }
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { issuer, addKey, publicKeys, stop: () => void server.close() }
}

const provider = await startProvider()
const first = await provider.addKey('one')
afterAll(provider.stop)

const settings = {
  'auth.oidc_issuer': provider.issuer,
  'auth.oidc_audience': 'redrive',
  'auth.oidc_roles_claim': 'realm_access.roles',
  'auth.oidc_name_claim': 'preferred_username',
  'auth.failed_attempts_max': 100_000,
}
const claims = { sub: 'u1', preferred_username: 'ann', realm_access: { roles: ['Viewer', 'unknown'] } }

describeKeysServer('tokens of an identity provider', 'SQLite memory', settings, (server) => {
  const sign = (
    payload: JWTPayload = claims,
    more: {
      key?: Awaited<ReturnType<typeof provider.addKey>>
      kid?: string
      aud?: string
      exp?: string
    } = {},
  ) =>
    new SignJWT(payload)
      .setProtectedHeader({ alg: 'ES256', kid: more.kid ?? 'one' })
      .setIssuer(provider.issuer)
      .setAudience(more.aud ?? 'redrive')
      .setIssuedAt()
      .setExpirationTime(more.exp ?? '5m')
      .sign(more.key ?? first)
  const send = (token: string, path = '/api/v1/queues') =>
    server.request('GET', path, undefined, bearer(token))
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

  it('a token has the roles of its claim, and its user is in the audit log', async () => {
    const token = await sign()
    expect((await send(token)).status).toBe(200)
    const denied = await server.request('POST', '/api/v1/queues', { name: 'q' }, bearer(token))
    expect([denied.status, denied.body.error.code]).toEqual([403, 'ACCESS_DENIED'])
    const admin = await sign({ ...claims, realm_access: { roles: ['Admin'] } })
    expect((await server.request('POST', '/api/v1/queues', { name: 'by-token' }, bearer(admin))).status).toBe(
      200,
    )
    const audit = await server.request('GET', '/api/v1/audit', undefined, bearer(server.adminKey))
    expect(JSON.stringify(audit.body)).toContain('"ann"')
  })

  it('a key that the provider adds is used without a restart', async () => {
    const second = await provider.addKey('two')
    // The library asks for new keys at most once a second.
    await expect
      .poll(async () => (await send(await sign(claims, { key: second, kid: 'two' }))).status, {
        timeout: 10_000,
      })
      .toBe(200)
  })

  it('a role for a namespace is valid in this namespace only', async () => {
    await server.admin('/v1/namespaces.create', { name: 'shop' })
    const token = await sign({ ...claims, realm_access: { roles: ['shop:NamespaceOwner'] } })
    const create = async (namespace: string) =>
      (
        await server.request(
          'POST',
          '/v1/roles.create',
          { namespace, name: 'r', permissions: [] },
          bearer(token),
        )
      ).status
    expect([await create('shop'), await create('_system')]).toEqual([200, 403])
  })

  it('a token that is not exactly right is refused', async () => {
    const { privateKey } = await generateKeyPair('ES256')
    const [header = '', payload = '', signature = ''] = (await sign()).split('.')
    const tokens = {
      'another audience': await sign(claims, { aud: 'other' }),
      expired: await sign(claims, { exp: '-2m' }),
      'another key': await sign(claims, { key: privateKey }),
      'an unknown key id': await sign(claims, { kid: 'nope' }),
      'alg none': `${encode({ alg: 'none' })}.${payload}.`,
      'alg HS256': `${encode({ alg: 'HS256', kid: 'one' })}.${payload}.${signature}`,
      'alg HS256 with the public key as secret': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'HS256', kid: 'one' })
        .setIssuer(provider.issuer)
        .setAudience('redrive')
        .setExpirationTime('5m')
        .sign(new TextEncoder().encode(provider.publicKeys[0])),
      'not yet valid': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer(provider.issuer)
        .setAudience('redrive')
        .setNotBefore('5m')
        .setExpirationTime('10m')
        .sign(first),
      'no expiry': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer(provider.issuer)
        .setAudience('redrive')
        .sign(first),
      'changed claims': `${header}.${encode({ ...claims, iss: provider.issuer, aud: 'redrive', exp: 4e9 })}.${signature}`,
      'no subject': await sign({ realm_access: { roles: ['Admin'] } }),
      'another issuer': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setIssuer('https://other.example')
        .setAudience('redrive')
        .setExpirationTime('5m')
        .sign(first),
      huge: `${header}.${'a'.repeat(13_000)}.${signature}`,
    }
    for (const [name, token] of Object.entries(tokens)) {
      const answer = await send(token)
      expect([name, answer.status, answer.body?.error?.code]).toEqual([name, 403, 'CREDENTIAL_REFUSED'])
    }
  })

  it('an API key works beside tokens', async () => {
    expect((await send(server.adminKey)).status).toBe(200)
  })
})

const unreachable = { ...settings, 'auth.oidc_jwks_url': 'http://127.0.0.1:1/keys' }

describeKeysServer('an identity provider that cannot be reached', 'SQLite memory', unreachable, (server) => {
  it('a token is answered with 503, and API keys work', async () => {
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer(provider.issuer)
      .setAudience('redrive')
      .setExpirationTime('5m')
      .sign(first)
    const answer = await server.request('GET', '/api/v1/queues', undefined, bearer(token))
    expect([answer.status, answer.body.error.code]).toEqual([503, 'IDENTITY_PROVIDER_UNAVAILABLE'])
    expect((await server.request('GET', '/api/v1/queues', undefined, bearer(server.adminKey))).status).toBe(
      200,
    )
  })
})
