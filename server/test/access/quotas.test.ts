/** Quotas of namespaces over HTTP, in each dialect that adds something. */
import { beforeAll, describe, expect, it } from 'vitest'
import { bearer, describeKeysServer } from './keys-server.ts'

describe.each(['SQLite memory', 'PostgreSQL'] as const)('%s', (store) => {
  describeKeysServer('quotas', store, {}, (server) => {
    let tenant: Record<string, string> = {}

    const setQuota = (quota: object) =>
      server.request(
        'PUT',
        '/api/v1/namespaces/shop/quota',
        { ...quota, reason: 'plan' },
        bearer(server.adminKey),
      )
    beforeAll(async () => {
      await server.admin('/v1/namespaces.create', { name: 'shop' })
      const { key } = await server.createKey({ roles: ['shop:Admin'] })
      tenant = bearer(key)
      const sent = { name: 'shop-work', namespace: 'shop' }
      expect((await server.request('POST', '/api/v1/queues', sent, tenant)).status).toBe(200)
    })

    it('a namespace shows its quota and its usage to its tenant, and to no other', async () => {
      const set = await setQuota({ queues_max: 7 })
      const quota = { queues_max: 7, items_max: null, bytes_max: null, requests_per_second_max: null }
      expect(set.body.quota).toEqual(quota)
      const mine = await server.request('GET', '/api/v1/namespaces/shop', undefined, tenant)
      expect(mine.body).toMatchObject({ name: 'shop', quota, usage: { queues: 1, items: 0, bytes: null } })
      const listed = await server.request('GET', '/api/v1/namespaces', undefined, tenant)
      expect(listed.body.namespaces.map(({ name }: { name: string }) => name)).toEqual(['shop'])
      const other = await server.request('GET', '/api/v1/namespaces/_system', undefined, tenant)
      expect(other.status).toBe(404)
      const refused = await server.request('PUT', '/api/v1/namespaces/shop/quota', {}, tenant)
      expect(refused.status).toBe(403)
    })

    it('an update of the namespace with the Queue API keeps its quota, and both have an audit row', async () => {
      await setQuota({ queues_max: 7 })
      await server.admin('/v1/namespaces.update', { name: 'shop', description: 'a shop' })
      const shown = await server.request('GET', '/api/v1/namespaces/shop', undefined, tenant)
      expect(shown.body).toMatchObject({ description: 'a shop', quota: { queues_max: 7 } })
      const rows = await server.request(
        'GET',
        '/api/v1/audit?action=namespace.set-quota',
        undefined,
        bearer(server.adminKey),
      )
      expect(rows.body.entries[0]).toMatchObject({
        target: 'shop',
        namespace: 'shop',
        reason: 'plan',
        actor: 'admin',
      })
    })

    it('the namespace of the system has no quota', async () => {
      const answer = await server.request(
        'PUT',
        '/api/v1/namespaces/_system/quota',
        {},
        bearer(server.adminKey),
      )
      expect(answer.status).toBe(400)
    })
  })
})

describeKeysServer('the errors of quotas', 'PostgreSQL', {}, (server) => {
  let key = ''
  const start = async (quota: object): Promise<string> => {
    const set = await server.request('PUT', '/api/v1/namespaces/shop/quota', quota, bearer(server.adminKey))
    expect(set.status).toBe(200)
    // A new server has not read the quotas yet: no need to wait until it reads them again.
    return server.startAnother()
  }
  const post = async (url: string, path: string, body: object) => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { ...bearer(key), 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  beforeAll(async () => {
    await server.admin('/v1/namespaces.create', { name: 'shop' })
    key = (await server.createKey({ roles: ['shop:Admin'] })).key
    for (const name of ['work', 'dead'])
      expect((await post(server.url, '/api/v1/queues', { name, namespace: 'shop' })).status).toBe(200)
  })

  it('a queue over the quota is refused with QUOTA_EXCEEDED in the format of each dialect', async () => {
    const url = await start({ queues_max: 2 })
    const own = await post(url, '/api/v1/queues', { name: 'third', namespace: 'shop' })
    expect([own.status, own.text]).toEqual([403, expect.stringContaining('QUOTA_EXCEEDED')])
    const queue = await post(url, '/v1/queues.create', {
      queue_name: 'third',
      namespace: 'shop',
      requested_partitions: 1,
      lease_timeout: '1m',
      expire_timeout: '1h',
    })
    expect([queue.status, queue.text]).toEqual([403, expect.stringContaining('its quota is 2 queues')])
  })

  it('items over the quota are refused wherever they come from, and other calls still work', async () => {
    const url = await start({ items_max: 3 })
    const added = await post(url, '/api/v1/queues/work/items', {
      items: [{ payload: { text: 'a' } }, { payload: { text: 'b' } }, { payload: { text: 'c' } }],
    })
    expect(added.status, added.text).toBe(200)
    const refused = [
      await post(url, '/api/v1/queues/work/items', { items: [{ payload: { text: 'd' } }] }),
      await post(url, '/v1/queue.produce', {
        queue_name: 'work',
        items: [{ utf8: 'd' }],
        request_timeout: '5s',
      }),
      await post(url, '/api/v1/letters', {
        queue: 'dead',
        letters: [{ original_topic: 'x', original_value: 'x', error_details: { message: 'x' } }],
      }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403])
    for (const { text } of refused) expect(text).toMatch(/quota of 3 items/)
    const leased = await post(url, '/v1/queue.lease', {
      queue_name: 'work',
      client_id: 'w',
      batch_size: 3,
      request_timeout: '5s',
    })
    expect(leased.status, leased.text).toBe(200)
    const metrics = await (await fetch(`${url}/metrics`)).text()
    expect(metrics).toContain('redrive_quota_refusals_total{namespace="shop",quota="items"} 3')
  })

  it('payloads over the quota of bytes are refused', async () => {
    const url = await start({ bytes_max: 1_000 })
    const large = { items: [{ payload: { text: 'x'.repeat(999) } }] }
    const answer = await post(url, '/api/v1/queues/work/items', large)
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('1000 bytes')])
  })

  it('requests over the rate get 429 with Retry-After, and the administrator is not limited', async () => {
    const url = await start({ requests_per_second_max: 2 })
    // The first request reads the quotas.
    await post(url, '/api/v1/queues/work/items', { items: [{ payload: { text: 'x' } }] })
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => fetch(`${url}/api/v1/queues`, { headers: bearer(key) })),
    )
    const limited = answers.filter(({ status }) => status === 429)
    expect(limited.length).toBeGreaterThan(0)
    expect(limited[0]?.headers.get('retry-after')).toBe('1')
    expect(await limited[0]?.text()).toContain('RATE_EXCEEDED')
    const admin = await Promise.all(
      Array.from({ length: 20 }, () => fetch(`${url}/api/v1/queues`, { headers: bearer(server.adminKey) })),
    )
    expect(new Set(admin.map(({ status }) => status))).toEqual(new Set([200]))
  })
})
