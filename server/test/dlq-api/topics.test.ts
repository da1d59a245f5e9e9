import { expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { describeDlqServers } from './servers.ts'

describeDlqServers('the messages of a topic', (api) => {
  it('the messages of a topic are listed in pages, newest first, in any status', async () => {
    await api.createQueue('orders')
    await api.createQueue('others')
    await api.createLetters('orders', ...['a', 'b', 'c', 'd', 'e'].map((message) => ({ message })))
    await api.createLetters('others', { message: 'x' })
    const ids = await api.listIds()
    await api.post('/requeue', { ids: [ids.at(-1)] })
    await api.completeAll('orders')
    await api.post('/requeue', { ids: [ids.at(-2)] })
    const page = async (query: string) => {
      const { messages, pagination } = (await api.get(`/orders${query}`)).body
      const texts = messages.map(
        ({ error_message, status }: Record<string, string>) => `${error_message} ${status}`,
      )
      return [texts, pagination]
    }
    expect(await page('')).toEqual([
      ['e PENDING', 'd PENDING', 'c PENDING', 'b RETRYING', 'a RESOLVED'],
      { total_count: 5, page: 1, page_size: 20, has_next: false },
    ])
    expect(await page('?page_size=2')).toEqual([
      ['e PENDING', 'd PENDING'],
      { total_count: 5, page: 1, page_size: 2, has_next: true },
    ])
    expect(await page('?page_size=2&page=3')).toEqual([
      ['a RESOLVED'],
      { total_count: 5, page: 3, page_size: 2, has_next: false },
    ])
    expect(await page('?page_size=5&page=2')).toEqual([
      [],
      { total_count: 5, page: 2, page_size: 5, has_next: false },
    ])
  })

  it('retry-all accepts a topic whose name is cut within a character for the campaign name', async () => {
    const topic = `a${'😀'.repeat(95)}`
    await api.createQueue(topic)
    await api.createLetters(topic, { message: 'x' })
    const { status, body } = await api.post(`/${encodeURIComponent(topic)}/retry-all`)
    expect([status, body.retried_count]).toEqual([200, 1])
  })

  it('a retry with unknown fields in its body is refused and changes nothing', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'x' })
    const [id] = await api.listIds()
    for (const path of [`/messages/${id}/retry`, '/orders/retry-all', '/messages/retry-all?topic=orders']) {
      for (const body of [{ target: 'elsewhere' }, { dry_run: true }, { reason: 5 }, [], [1], 'text']) {
        const { status } = await api.post(path, body)
        expect([path, body, status]).toEqual([path, body, 400])
      }
    }
    expect((await api.get(`/messages/${id}`)).body.status).toBe('PENDING')
    const { status } = await api.post(`/messages/${id}/retry`, { reason: 'it is repaired' })
    expect(status).toBe(200)
    const { body } = await api.request('GET', '/api/v1/audit?action=letter.redrive&limit=1')
    expect(JSON.stringify(body)).toContain('it is repaired')
  })

  it('an unknown topic has no messages', async () => {
    const { status, body } = await api.get('/unknown-topic')
    expect([status, body]).toEqual([
      200,
      { messages: [], pagination: { total_count: 0, page: 1, page_size: 20, has_next: false } },
    ])
  })

  it.each([
    ['page=0&page_size=0', { page: 1, page_size: 1 }],
    ['page=-7&page_size=-1', { page: 1, page_size: 1 }],
    ['page_size=100000', { page: 1, page_size: 1_000 }],
    ['page=2147483648&page_size=1000', { page: 2_147_483_648, page_size: 1_000 }],
    ['page=99999999999999999999', { page: Number.MAX_SAFE_INTEGER, page_size: 20 }],
  ])('page parameters outside their bounds count as the bounds: %s', async (query, pagination) => {
    expect((await api.get(`/orders?${query}`)).body.pagination).toEqual({
      total_count: 0,
      has_next: false,
      ...pagination,
    })
  })

  it.each(['stats', 'requeue', 'purge', 'messages', 'retry-all'])(
    'the messages of a topic named %s are listed and retried with ?topic=',
    async (topic) => {
      await api.createQueue(topic)
      await api.createLetters(topic, { message: 'a' })
      expect((await api.get(`/messages?topic=${topic}`)).body.messages).toMatchObject([
        { original_topic: topic, error_message: 'a' },
      ])
      const { body } = await api.post(`/messages/retry-all?topic=${topic}`)
      expect(body).toMatchObject({ retried_count: 1, message: `1 messages retried in topic ${topic}` })
    },
  )

  it.each(['stats', 'requeue', 'purge'])(
    'the messages of a topic named %s are retried by its path',
    async (topic) => {
      await api.createQueue(topic)
      await api.createLetters(topic, { message: 'a' })
      expect((await api.post(`/${topic}/retry-all`)).body).toMatchObject({ retried_count: 1 })
    },
  )

  it.each(['a/b', 'ümläut', 'a.b-c_d', 'k1s0.system.auth.login.v1'])(
    'a topic may be named %s',
    async (topic) => {
      await api.createQueue(topic)
      await api.createLetters(topic, { message: 'a' })
      const path = `/${encodeURIComponent(topic)}`
      expect((await api.get(path)).body.messages).toMatchObject([{ original_topic: topic }])
      expect((await api.post(`${path}/retry-all`)).body.retried_count).toBe(1)
    },
  )

  it('a page of large payloads omits payloads above its size limit; a single message is complete', async () => {
    await api.createQueue('orders')
    const text = JSON.stringify('x'.repeat(6_000_000))
    const small = '"small"'
    // The small messages are read first and must not affect the limit for the large ones.
    await api.createLetters('orders', ...Array.from({ length: 6 }, () => ({ text })))
    await api.createLetters('orders', ...Array.from({ length: 3 }, () => ({ text: small })))
    const { messages } = (await api.get('/orders')).body
    const lengths = messages.map(({ payload }: { payload: unknown }) => JSON.stringify(payload).length)
    expect(lengths).toEqual([7, 7, 7, ...Array(3).fill(text.length), 19, 19, 19])
    expect(messages.at(-1).payload).toEqual({ is_omitted: true })
    expect((await api.get(`/messages/${messages.at(-1).id}`)).body.payload.length).toBe(6_000_000)
  })
})

describeDlqServers(
  'archived letters',
  (api) => {
    it('an archived letter is not a message and cannot be retried, requeued or purged', async () => {
      await api.createQueue('orders')
      await api.createLetters('orders', { message: 'a' })
      const [id = ''] = await api.listIds()
      await api.post('/requeue', { ids: [id] })
      await api.completeAll('orders')
      await api.advance('744h')
      const gone = await pollUntil(
        () => api.get(`/messages/${id}`),
        ({ status }) => status !== 200,
      )
      expect([gone.status, gone.body.error.message]).toEqual([
        404,
        `message ${id} is archived: restore it with POST /api/v1/archive/restore`,
      ])
      expect((await api.get('/orders')).body.pagination.total_count).toBe(0)
      expect((await api.post(`/messages/${id}/retry`)).status).toBe(404)
      expect((await api.delete(`/messages/${id}`)).status).toBe(200)
      expect((await api.post('/requeue', { ids: [id] })).body.data.skipped).toEqual([
        { id, reason: 'not_dead_letter' },
      ])
      expect((await api.post('/purge', { ids: [id] })).body.data).toMatchObject({ purged: 0 })
    })
  },
  { 'letters.retention_interval': 50 },
)

describeDlqServers('retry-all', (api) => {
  it('retry-all redrives the PENDING messages of a topic with a campaign', async () => {
    await api.createQueue('orders', { redrive: { redrives_max: 1 } })
    await api.createQueue('others')
    await api.createLetters('others', { message: 'x' })
    await api.createLetters('orders', { message: 'is DEAD soon' })
    await api.post('/requeue', { ids: [(await api.listIds())[0]] })
    await api.failAll('orders', 'again')
    await api.createLetters('orders', { message: 'a' }, { message: 'b' })
    const { status, body } = await api.post('/orders/retry-all')
    expect([status, body]).toEqual([
      200,
      {
        retried_count: 2,
        message: '2 messages retried in topic orders',
        campaign_id: expect.stringMatching(/^[0-9A-Za-z]{27}$/),
      },
    ])
    const statuses = async () =>
      (await api.get('/orders')).body.messages.map(({ status }: { status: string }) => status)
    expect(await statuses()).toEqual(['RETRYING', 'RETRYING', 'DEAD'])
    expect(await api.completeAll('orders')).toBe(2)
    expect(await statuses()).toEqual(['RESOLVED', 'RESOLVED', 'DEAD'])
    const campaign = await pollUntil(
      async () => (await api.request('GET', `/api/v1/campaigns/${body.campaign_id}`)).body,
      ({ state }) => state === 'done',
    )
    expect(campaign).toMatchObject({ size: 2 })
    expect((await api.get('/others')).body.messages).toMatchObject([{ status: 'PENDING' }])
  })

  it('concurrent retry-all calls send each message once', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' }, { message: 'b' })
    const answers = await Promise.all([1, 2, 3].map(() => api.post('/orders/retry-all', {})))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const retried = answers.map(({ body }) => body.retried_count)
    expect(retried.reduce((sum, count) => sum + count, 0)).toBe(2)
    expect((await api.lease('orders')).length).toBe(2)
    expect((await api.post('/orders/retry-all')).body).toEqual({
      retried_count: 0,
      message: '0 messages retried in topic orders',
    })
  })

  it('retry-all of an unknown topic creates no campaign', async () => {
    const { status, body } = await api.post('/unknown-topic/retry-all')
    expect([status, body]).toEqual([
      200,
      { retried_count: 0, message: '0 messages retried in topic unknown-topic' },
    ])
  })

  it('retry-all counts messages that could not be sent as skipped', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' }, { message: 'b' })
    await api.request('DELETE', '/api/v1/queues/orders')
    const { status, body } = await api.post('/orders/retry-all')
    expect([status, body]).toMatchObject([
      200,
      { retried_count: 0, skipped_count: 2, message: '0 messages retried in topic orders' },
    ])
    expect((await api.get('/orders')).body.messages).toMatchObject([
      { status: 'PENDING', retry_count: 0, last_retry_at: null },
      { status: 'PENDING', retry_count: 0, last_retry_at: null },
    ])
  })
})
