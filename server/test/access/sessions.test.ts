import { expect, it } from 'vitest'
import { routes } from '../../src/api/routes.ts'
import { bearer, describeKeysServer } from './keys-server.ts'

describeKeysServer('the session of a browser', 'SQLite memory', {}, (server) => {
  const signIn = (key: string, headers: Record<string, string> = {}) =>
    server.request('POST', '/api/v1/session', { key }, headers)
  const readCookie = (headers: Headers) => (headers.get('set-cookie') ?? '').split(';')[0] ?? ''

  it('signing in with a key sets a cookie that scripts and other sites cannot use', async () => {
    const { key } = await server.createKey({ roles: ['Operator'] })
    const answer = await signIn(key)
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ is_required: true, user: expect.stringContaining('user-') })
    expect(answer.headers.get('set-cookie')).toMatch(
      /^redrive_session=[0-9A-Za-z]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    )
    const cookie = readCookie(answer.headers)
    expect((await server.request('GET', '/api/v1/queues', undefined, { cookie })).status).toBe(200)
    const who = await server.request('GET', '/api/v1/session', undefined, { cookie })
    expect(who.body).toEqual({ is_required: true, user: answer.body.user })
    expect(answer.headers.get('set-cookie')).not.toContain(key)
  })

  it('a session is asked for again with 401 after signing out, and after its key was revoked', async () => {
    const { key, id } = await server.createKey({ roles: ['Viewer'] })
    const [first, second] = [readCookie((await signIn(key)).headers), readCookie((await signIn(key)).headers)]
    const status = async (cookie: string) =>
      (await server.request('GET', '/api/v1/queues', undefined, { cookie })).status
    expect([await status(first), await status(second)]).toEqual([200, 200])
    const out = await server.request('DELETE', '/api/v1/session', undefined, { cookie: first })
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0')
    expect([await status(first), await status(second)]).toEqual([401, 200])
    await server.admin('/v1/apikeys.delete', { id })
    expect(await status(second)).toBe(401)
    const who = await server.request('GET', '/api/v1/session', undefined, { cookie: second })
    expect(who.body).toEqual({ is_required: true, user: null })
  })

  it('a page of another site can neither sign in nor change anything with the session', async () => {
    const { key } = await server.createKey({ roles: ['Admin'] })
    const cookie = readCookie((await signIn(key)).headers)
    const create = (headers: Record<string, string>) =>
      server.request('POST', '/api/v1/queues', { name: `q-${Math.random()}` }, { cookie, ...headers })
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
    ] as Record<string, string>[]) {
      const answer = await create(headers)
      expect([answer.status, answer.body.error.code]).toEqual([403, 'CROSS_SITE_REFUSED'])
      expect((await signIn(key, headers)).status).toBe(403)
    }
    expect((await create({ 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    expect((await create({ origin: server.url })).status).toBe(200)
    // A key in a header is no cookie: a page of another site cannot know it.
    const withKey = await server.request(
      'POST',
      '/api/v1/queues',
      { name: 'with-key' },
      { ...bearer(key), origin: 'https://evil.example' },
    )
    expect(withKey.status).toBe(200)
  })

  it('a cookie that somebody planted before signing in is not used, and opens nothing afterwards', async () => {
    const { key } = await server.createKey({ roles: ['Viewer'] })
    const planted = `redrive_session=${'A'.repeat(43)}`
    const answer = await signIn(key, { cookie: planted })
    expect(answer.status).toBe(200)
    expect(readCookie(answer.headers)).not.toBe(planted)
    expect((await server.request('GET', '/api/v1/queues', undefined, { cookie: planted })).status).toBe(401)
    const again = readCookie((await signIn(key, { cookie: readCookie(answer.headers) })).headers)
    expect(again).not.toBe(readCookie(answer.headers))
  })

  it('every route that changes something refuses a session that a page of another site uses', async () => {
    const { key } = await server.createKey({ roles: ['Admin'] })
    const cookie = readCookie((await signIn(key)).headers)
    const changing = routes.filter(({ method, permission }) => method !== 'GET' && permission !== 'public')
    expect(changing.length).toBeGreaterThan(60)
    const passed: string[] = []
    for (const { method, path } of changing) {
      const response = await fetch(server.url + path.replaceAll(/\{\w+\}/g, 'x'), {
        method,
        headers: { cookie, origin: 'https://evil.example', 'content-type': 'application/json' },
        body: '{}',
      })
      const text = await response.text()
      if (response.status !== 403) passed.push(`${method} ${path}: ${response.status} ${text}`)
    }
    expect(passed).toEqual([])
  })

  it('a wrong key does not sign in', async () => {
    const answer = await signIn(`qtr-live-${'0'.repeat(43)}`)
    expect([answer.status, answer.body.error.code]).toEqual([403, 'CREDENTIAL_REFUSED'])
    expect(answer.headers.get('set-cookie')).toBeNull()
  })
})
