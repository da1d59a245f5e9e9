import { expect, it } from 'vitest'
import { until } from '../http/poll.ts'
import { describeDesks } from './desk.ts'

describeDesks('the messages of a topic', (desk) => {
  it('come in pages, newest first, whatever their status', async () => {
    await desk.queue('orders')
    await desk.queue('others')
    await desk.die('orders', ...['a', 'b', 'c', 'd', 'e'].map((message) => ({ message })))
    await desk.die('others', { message: 'x' })
    const ids = await desk.ids()
    await desk.post('/requeue', { ids: [ids.at(-1)] })
    await desk.completeAll('orders')
    await desk.post('/requeue', { ids: [ids.at(-2)] })
    const page = async (query: string) => {
      const { messages, pagination } = (await desk.get(`/orders${query}`)).body
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

  it('are retried also where a long name is cut through a character', async () => {
    const topic = `a${'😀'.repeat(95)}`
    await desk.queue(topic)
    await desk.die(topic, { message: 'x' })
    const { status, body } = await desk.post(`/${encodeURIComponent(topic)}/retry-all`)
    expect([status, body.retried_count]).toEqual([200, 1])
  })

  it('are retried only as asked: a body that says more is refused, and changes nothing', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'x' })
    const [id] = await desk.ids()
    for (const path of [`/messages/${id}/retry`, '/orders/retry-all', '/messages/retry-all?topic=orders']) {
      for (const body of [{ target: 'elsewhere' }, { dry_run: true }, { reason: 5 }, [], [1], 'text']) {
        const { status } = await desk.post(path, body)
        expect([path, body, status]).toEqual([path, body, 400])
      }
    }
    expect((await desk.get(`/messages/${id}`)).body.status).toBe('PENDING')
    const { status } = await desk.post(`/messages/${id}/retry`, { reason: 'it is mended' })
    expect(status).toBe(200)
    const { body } = await desk.ask('GET', '/api/v1/audit?action=letter.redrive&limit=1')
    expect(JSON.stringify(body)).toContain('it is mended')
  })

  it('are none for a topic that nobody knows', async () => {
    const { status, body } = await desk.get('/nobody-knows-it')
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
  ])('take what is beyond the bounds as the bounds: %s', async (query, pagination) => {
    expect((await desk.get(`/orders?${query}`)).body.pagination).toEqual({
      total_count: 0,
      has_next: false,
      ...pagination,
    })
  })

  it.each(['stats', 'requeue', 'purge', 'messages', 'retry-all'])(
    'of a topic called %s are found by ?topic=',
    async (topic) => {
      await desk.queue(topic)
      await desk.die(topic, { message: 'a' })
      expect((await desk.get(`/messages?topic=${topic}`)).body.messages).toMatchObject([
        { original_topic: topic, error_message: 'a' },
      ])
      const { body } = await desk.post(`/messages/retry-all?topic=${topic}`)
      expect(body).toMatchObject({ retried_count: 1, message: `1 messages retried in topic ${topic}` })
    },
  )

  it.each(['stats', 'requeue', 'purge'])(
    'of a topic called %s can be sent back by its path',
    async (topic) => {
      await desk.queue(topic)
      await desk.die(topic, { message: 'a' })
      expect((await desk.post(`/${topic}/retry-all`)).body).toMatchObject({ retried_count: 1 })
    },
  )

  it.each(['a/b', 'ümläut', 'a.b-c_d', 'k1s0.system.auth.login.v1'])('may be called %s', async (topic) => {
    await desk.queue(topic)
    await desk.die(topic, { message: 'a' })
    const path = `/${encodeURIComponent(topic)}`
    expect((await desk.get(path)).body.messages).toMatchObject([{ original_topic: topic }])
    expect((await desk.post(`${path}/retry-all`)).body.retried_count).toBe(1)
  })

  it('with large payloads are a bounded page; each alone is whole', async () => {
    await desk.queue('orders')
    const text = JSON.stringify('x'.repeat(6_000_000))
    const small = '"small"'
    // What is read first says nothing of what comes after it.
    await desk.die('orders', ...Array.from({ length: 6 }, () => ({ text })))
    await desk.die('orders', ...Array.from({ length: 3 }, () => ({ text: small })))
    const { messages } = (await desk.get('/orders')).body
    const lengths = messages.map(({ payload }: { payload: unknown }) => JSON.stringify(payload).length)
    expect(lengths).toEqual([7, 7, 7, ...Array(3).fill(text.length), 19, 19, 19])
    expect(messages.at(-1).payload).toEqual({ is_omitted: true })
    expect((await desk.get(`/messages/${messages.at(-1).id}`)).body.payload.length).toBe(6_000_000)
  })
})

describeDesks(
  'what was archived',
  (desk) => {
    it('is not among the messages any more, and nothing can be done to it here', async () => {
      await desk.queue('orders')
      await desk.die('orders', { message: 'a' })
      const [id = ''] = await desk.ids()
      await desk.post('/requeue', { ids: [id] })
      await desk.completeAll('orders')
      await desk.advance('744h')
      const gone = await until(
        () => desk.get(`/messages/${id}`),
        ({ status }) => status !== 200,
      )
      expect([gone.status, gone.body.error.message]).toEqual([
        404,
        `message ${id} is in the archive: POST /api/v1/archive/restore brings it back`,
      ])
      expect((await desk.get('/orders')).body.pagination.total_count).toBe(0)
      expect((await desk.post(`/messages/${id}/retry`)).status).toBe(404)
      expect((await desk.delete(`/messages/${id}`)).status).toBe(200)
      expect((await desk.post('/requeue', { ids: [id] })).body.data.skipped).toEqual([
        { id, reason: 'not_dead_letter' },
      ])
      expect((await desk.post('/purge', { ids: [id] })).body.data).toEqual({ purged: 0 })
    })
  },
  { 'letters.retention_interval': 50 },
)

describeDesks('a retry of all messages of a topic', (desk) => {
  it('sends what is PENDING, as a campaign that can be followed', async () => {
    await desk.queue('orders', { redrive: { redrives_max: 1 } })
    await desk.queue('others')
    await desk.die('others', { message: 'x' })
    await desk.die('orders', { message: 'is DEAD soon' })
    await desk.post('/requeue', { ids: [(await desk.ids())[0]] })
    await desk.failAll('orders', 'again')
    await desk.die('orders', { message: 'a' }, { message: 'b' })
    const { status, body } = await desk.post('/orders/retry-all')
    expect([status, body]).toEqual([
      200,
      {
        retried_count: 2,
        message: '2 messages retried in topic orders',
        campaign_id: expect.stringMatching(/^[0-9A-Za-z]{27}$/),
      },
    ])
    const statuses = async () =>
      (await desk.get('/orders')).body.messages.map(({ status }: { status: string }) => status)
    expect(await statuses()).toEqual(['RETRYING', 'RETRYING', 'DEAD'])
    expect(await desk.completeAll('orders')).toBe(2)
    expect(await statuses()).toEqual(['RESOLVED', 'RESOLVED', 'DEAD'])
    const campaign = await until(
      async () => (await desk.ask('GET', `/api/v1/campaigns/${body.campaign_id}`)).body,
      ({ state }) => state === 'done',
    )
    expect(campaign).toMatchObject({ size: 2 })
    expect((await desk.get('/others')).body.messages).toMatchObject([{ status: 'PENDING' }])
  })

  it('sends nothing twice', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' }, { message: 'b' })
    const answers = await Promise.all([1, 2, 3].map(() => desk.post('/orders/retry-all', {})))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const retried = answers.map(({ body }) => body.retried_count)
    expect(retried.reduce((sum, count) => sum + count, 0)).toBe(2)
    expect((await desk.lease('orders')).length).toBe(2)
    expect((await desk.post('/orders/retry-all')).body).toEqual({
      retried_count: 0,
      message: '0 messages retried in topic orders',
    })
  })

  it('is of none for a topic that nobody knows, and makes no campaign of them', async () => {
    const { status, body } = await desk.post('/nobody-knows-it/retry-all')
    expect([status, body]).toEqual([
      200,
      { retried_count: 0, message: '0 messages retried in topic nobody-knows-it' },
    ])
  })

  it('counts what could not be sent as not retried', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' }, { message: 'b' })
    await desk.ask('DELETE', '/api/v1/queues/orders')
    const { status, body } = await desk.post('/orders/retry-all')
    expect([status, body]).toMatchObject([
      200,
      { retried_count: 0, skipped_count: 2, message: '0 messages retried in topic orders' },
    ])
    expect((await desk.get('/orders')).body.messages).toMatchObject([
      { status: 'PENDING', retry_count: 0, last_retry_at: null },
      { status: 'PENDING', retry_count: 0, last_retry_at: null },
    ])
  })
})
