import { expect, it } from 'vitest'
import { describeWebhookServers } from './webhook-server.ts'

describeWebhookServers('producers, channels and consumers', {}, ({ send, setUp, broadcast, tokens }) => {
  it('a PUT creates an object with defaults, and its Last-Modified is the time of its last change', async () => {
    const created = await send('PUT', '/channel/c%201', { form: {} })
    expect(created.status).toBe(200)
    expect(created.json).toEqual({
      ID: 'c 1',
      Name: 'c 1',
      Token: expect.stringMatching(/^[A-Za-z0-9]{12}$/),
      ChangedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      ConsumersURL: '/channel/c%201/consumers',
      MessagesURL: '/channel/c%201/messages',
      BroadcastURL: '/channel/c%201/broadcast',
      MessagesStatusURL: '/channel/c%201/messages-status',
    })
    const changedAt = new Date(created.headers.get('last-modified') ?? '')
    expect(changedAt.toISOString().replace('.000Z', 'Z')).toBe(created.json.ChangedAt)
    expect((await send('GET', '/channel/c%201')).json).toEqual(created.json)
    expect(created.headers.get('x-request-id')).toMatch(/^[0-9a-v]{19}[0g]$/)
    const named = await send('GET', '/channel/C%201', { headers: { 'X-Request-ID': 'my-id' } })
    expect([named.status, named.headers.get('x-request-id')]).toEqual([404, 'my-id'])
    expect(named.headers.get('content-type')).toMatch(/^text\/plain/)
  })

  it('a PUT of an existing object needs its Last-Modified, and a PUT that changes nothing leaves it alone', async () => {
    const form = { token: 't1', name: 'n' }
    const first = await send('PUT', '/producer/conditional', { form })
    const since = { 'If-Unmodified-Since': first.headers.get('last-modified') ?? '' }
    expect((await send('PUT', '/producer/conditional', { form })).status).toBe(400)
    const old = { 'If-Unmodified-Since': 'Sun, 06 Nov 1994 08:49:37 GMT' }
    expect((await send('PUT', '/producer/conditional', { form, headers: old })).status).toBe(412)
    const same = await send('PUT', '/producer/conditional', { form, headers: since })
    expect([same.status, same.json]).toEqual([200, first.json])
    const changed = await send('PUT', '/producer/conditional', { form: { token: 't2' }, headers: since })
    expect(changed.json).toMatchObject({ Token: 't2', Name: 'conditional' })
    expect(changed.json.ChangedAt > first.json.ChangedAt).toBe(true)
    expect((await send('PUT', '/producer/conditional', { form, headers: since })).status).toBe(412)
  })

  it('a form must have the media type of a form, with any parameters', async () => {
    const type = (value: string) => ({ headers: { 'content-type': value }, body: 'token=abc' })
    expect((await send('PUT', '/channel/typed', type('application/json'))).status).toBe(415)
    expect((await send('PUT', '/channel/typed')).status).toBe(415)
    const accepted = await send(
      'PUT',
      '/channel/typed',
      type('application/x-www-form-urlencoded; charset=utf-8'),
    )
    expect([accepted.status, accepted.json.Token]).toEqual([200, 'abc'])
  })

  it('a consumer needs a channel, an absolute callback URL and a known type', async () => {
    await setUp('c2')
    const put = async (form: Record<string, string>, channel = 'c2') =>
      (await send('PUT', `/channel/${channel}/consumer/k`, { form })).status
    expect(await put({ callbackUrl: 'http://a.example' }, 'nowhere')).toBe(404)
    expect([await put({}), await put({ callbackUrl: '/relative' }), await put({ type: 'pull' })]).toEqual([
      400, 400, 400,
    ])
    expect(await put({ callbackUrl: 'http://a.example', type: 'other' })).toBe(400)
    const created = await send('PUT', '/channel/c2/consumer/k', {
      form: { callbackUrl: 'http://a.example/x' },
    })
    expect(created.json).toMatchObject({
      ID: 'k',
      Name: 'k',
      CallbackURL: 'http://a.example/x',
      DeadLetterQueueURL: '/channel/c2/consumer/k/dlq',
      Type: 'push',
    })
  })

  it('a consumer is deleted only with its Last-Modified and without jobs', async () => {
    await setUp('c3', 'k', 'pull')
    const path = '/channel/c3/consumer/k'
    const { headers } = await send('GET', path)
    const since = { 'If-Unmodified-Since': headers.get('last-modified') ?? '' }
    expect((await send('DELETE', path)).status).toBe(400)
    expect((await send('DELETE', `${path}2`, { headers: since })).status).toBe(404)
    expect((await send('DELETE', path, { headers: since })).status).toBe(204)
    expect((await send('GET', path)).status).toBe(404)
    await setUp('c3', 'k', 'pull')
    await broadcast('c3')
    const queued = () => send('GET', `${path}/queued-jobs`, { headers: tokens('c3', 'k') })
    for (let attempt = 0; attempt < 200 && (await queued()).json.Result.length === 0; attempt++) {}
    const again = await send('GET', path)
    const now = { 'If-Unmodified-Since': again.headers.get('last-modified') ?? '' }
    expect((await send('DELETE', path, { headers: now })).status).toBe(409)
  })

  it('lists have 25 links per page, newest first, and cursors lead in both directions', async () => {
    await setUp('paged')
    for (let n = 0; n < 30; n++) {
      const form = { callbackUrl: 'http://a.example', type: 'pull' }
      await send('PUT', `/channel/paged/consumer/k${String(n).padStart(2, '0')}`, { form })
    }
    const names = (from: number, to: number) =>
      Array.from(
        { length: from - to + 1 },
        (_, n) => `/channel/paged/consumer/k${String(from - n).padStart(2, '0')}`,
      )
    const first = (await send('GET', '/channel/paged/consumers?x=1')).json
    expect(first.Result).toEqual(names(29, 5))
    expect(first.Links).toBeNull()
    expect(first.Pages.next).toContain('x=1')
    const second = (await send('GET', first.Pages.next)).json
    expect(second.Result).toEqual(names(4, 0))
    expect((await send('GET', second.Pages.previous)).json.Result).toEqual(names(29, 5))
    expect((await send('GET', second.Pages.next)).json).toEqual({ Result: [], Pages: {}, Links: null })
    const both = `${first.Pages.next}&previous=x`
    expect((await send('GET', both)).status).toBe(400)
    expect((await send('GET', '/channel/paged/consumers?next=unreadable')).json.Result).toHaveLength(25)
    expect((await send('GET', '/channel/nowhere/consumers')).status).toBe(404)
  })

  it('another method on a known path is refused with the allowed ones, and an unknown path is not found', async () => {
    const refused = await send('DELETE', '/channel/c')
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, PUT'])
    expect(refused.headers.get('content-type')).toMatch(/^text\/plain/)
    expect((await send('GET', '/channel/c/unknown')).status).toBe(404)
  })
})
