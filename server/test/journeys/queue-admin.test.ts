import { describe, expect, it } from 'vitest'
import { startTestServer } from '../http/test-server.ts'

type Answer = Readonly<{ status: number; body: Record<string, never> }>

async function startServer(settings: Parameters<typeof startTestServer>[0] = {}) {
  const { url } = await startTestServer(settings)
  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(body !== undefined && {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, never> }
  }
  const post = (path: string, body: unknown) => call('POST', path, body)
  const lease = (queue: string, count: number, clientId = 'worker', timeout = '2s') =>
    post('/v1/queue.lease', {
      queue_name: queue,
      batch_size: count,
      client_id: clientId,
      request_timeout: timeout,
    })
  const texts = (answer: Answer) =>
    ((answer.body as unknown as { items?: { bytes: string }[] }).items ?? []).map(({ bytes }) => atob(bytes))
  return { url, call, post, lease, texts }
}

describe('a queue over the /api/v1 API', () => {
  it('a queue is created with a whole policy, changed and deleted', async () => {
    const { call, post } = await startServer()
    const policy = {
      lease_timeout: '30s',
      expire_timeout: '1h',
      attempts_max: 5,
      retry: { kind: 'list', delays: ['1s', '5s', '30s', '5m', '30m'], jitter: 0.1 },
      done_retention: '1h',
    }
    const created = await post('/api/v1/queues', { name: 'orders', partitions: 2, policy, reason: 'go live' })
    expect(created).toMatchObject({ status: 200, body: { name: 'orders', partitions: 2 } })
    expect(created.body.policy).toMatchObject({
      lease_timeout: '30s',
      attempts_max: 5,
      retry: { kind: 'list' },
    })
    expect(await post('/api/v1/queues', { name: 'orders' })).toMatchObject({
      status: 409,
      body: { error: { code: 'QUEUE_EXISTS' } },
    })
    const changed = await call('PATCH', '/api/v1/queues/orders', { policy: { attempts_max: 9 } })
    expect(changed.body.policy).toMatchObject({ lease_timeout: '30s', attempts_max: 9 })
    expect((await call('DELETE', '/api/v1/queues/orders?reason=done')).status).toBe(200)
    expect((await call('GET', '/api/v1/queues/orders')).status).toBe(404)
  })

  it('a change of the redrive policy keeps the fields that it does not name', async () => {
    const { call, post } = await startServer()
    const backoff = { kind: 'fixed', delays: ['5s'], jitter: 0.5 }
    const redrive = { mode: 'auto', redrives_max: 2, backoff }
    await post('/api/v1/queues', { name: 'dead', policy: { redrive } })
    const changed = await call('PATCH', '/api/v1/queues/dead', { policy: { redrive: { redrives_max: 4 } } })
    expect(changed.body.policy).toMatchObject({ redrive: { ...redrive, redrives_max: 4 } })
    const created = await post('/api/v1/queues', { name: 'new', policy: { redrive: { mode: 'auto' } } })
    expect(created.body.policy).toMatchObject({ redrive: { mode: 'auto', redrives_max: 3 } })
  })

  it('an invalid queue or item is refused with the name of the invalid field', async () => {
    const { call, post } = await startServer()
    const refused = async (answer: Promise<Answer>, ...words: string[]) => {
      const { status, body } = await answer
      expect(status).toBe(400)
      for (const word of words) expect(JSON.stringify(body)).toContain(word)
    }
    await refused(post('/api/v1/queues', { name: 'a b' }), 'name')
    await refused(post('/api/v1/queues', { name: 'q', policy: { lease: '1m' } }), 'policy.lease is not known')
    await refused(
      post('/api/v1/queues', { name: 'q', policy: { lease_timeout: 'soon' } }),
      'lease_timeout',
      'soon',
    )
    await refused(
      post('/api/v1/queues', { name: 'q', policy: { lease_timeout: '2h', expire_timeout: '1h' } }),
      'lease',
    )
    const retry = { kind: 'fixed', delays: ['1s', '2s'] }
    await refused(post('/api/v1/queues', { name: 'q', policy: { retry } }), 'retry.delays')
    await refused(post('/api/v1/queues', { name: 'q', policy: { dead_queue: 'nowhere' } }), 'nowhere')
    await post('/api/v1/queues', { name: 'q' })
    await refused(call('PATCH', '/api/v1/queues/q', { policy: { expire_timeout: '1s' } }), 'lease')
    const twoForms = { items: [{}, { payload: { text: 'a', base64: 'YQ' } }] }
    await refused(post('/api/v1/queues/q/items', twoForms), 'body.items[1].payload has text and base64')
    await refused(
      post('/api/v1/queues/q/items', { items: [{ payload: {} }] }),
      'body.items[0].payload is empty',
    )
    await refused(
      post('/api/v1/queues/q/items', { items: [{ text: 'a' }] }),
      'body.items[0].text is not known',
    )
    await refused(post('/api/v1/queues/q/items', { items: [{ payload: { base64: '***' } }] }), 'base64')
    for (const broken of ['A', 'YQ=', 'YWJjZ', 'Y===', 'YQ==YQ==']) {
      await refused(
        post('/api/v1/queues/q/items', { items: [{ payload: { base64: broken } }] }),
        'items[0].payload.base64',
      )
      await refused(
        post('/api/v1/queues/q/items', { items: [{ key: { base64: broken } }] }),
        'items[0].key.base64',
      )
      await refused(
        post('/api/v1/queues/q/items', { items: [{ headers: [{ name: 'h', base64: broken }] }] }),
        'headers[0].base64',
      )
    }
    await refused(
      post('/api/v1/queues/q/items', { items: [{ payload: { text: 'a' }, available_at: 'noon' }] }),
      'available_at',
    )
  })

  it('a paused queue leases no items, and a resume serves the waiting lease calls', async () => {
    const { post, lease, texts } = await startServer()
    await post('/api/v1/queues', { name: 'q' })
    await post('/api/v1/queues/q/pause', { reason: 'the receiver is down' })
    await post('/api/v1/queues/q/items', { items: [{ payload: { text: 'one' } }] })
    expect((await lease('q', 1, 'a', '50ms')).status).toBe(454)
    const waiting = lease('q', 1, 'b', '10s')
    await post('/api/v1/queues/q/resume', {})
    expect(texts(await waiting)).toEqual(['one'])
  })

  it('a queue can be paused and resumed without a reason', async () => {
    const { call, post } = await startServer()
    await post('/api/v1/queues', { name: 'q' })
    const paused = await call('POST', '/api/v1/queues/q/pause')
    expect(paused).toMatchObject({ status: 200, body: { is_paused: true } })
    const resumed = await call('POST', '/api/v1/queues/q/resume')
    expect(resumed).toMatchObject({ status: 200, body: { is_paused: false } })
  })

  it('a JSON payload is stored exactly as it is written in the request', async () => {
    const { url, post, lease, texts } = await startServer()
    await post('/api/v1/queues', { name: 'q' })
    const written = ['{"n": 12345678901234567890, "n":1.0}', '[ ]', 'null', '"a\\u0000\\ud800"']
    const items = written.map((json) => `{"kind":"k","payload":{"json": ${json} }}`)
    const response = await fetch(`${url}/api/v1/queues/q/items`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"items":[${items.join(',')}]}`,
    })
    expect(response.status).toBe(200)
    expect(texts(await lease('q', 10))).toEqual(written)
  })

  it('payloads are accepted in both base64 alphabets, with and without padding', async () => {
    const { post, lease } = await startServer()
    await post('/api/v1/queues', { name: 'q' })
    const items = ['', '-_8', '+/8=', 'YQ', 'YQ=='].map((base64) => ({ payload: { base64 } }))
    expect((await post('/api/v1/queues/q/items', { items })).status).toBe(200)
    const { items: leased } = (await lease('q', 5)).body as unknown as { items: { bytes?: string }[] }
    expect(leased.map(({ bytes }) => bytes)).toEqual([undefined, '+/8=', '+/8=', 'YQ==', 'YQ=='])
  })

  it('a queue has up to 10,000 partitions, and leases in the last partition can be extended', async () => {
    const { post } = await startServer()
    expect((await post('/api/v1/queues', { name: 'wide', partitions: 10_001 })).status).toBe(400)
    expect((await post('/api/v1/queues', { name: 'wide', partitions: 10_000 })).status).toBe(200)
    const item = { is_leased: true, lease_deadline: '2090-01-01T00:00:00Z', payload: 'YQ==' }
    const imported = { queue_name: 'wide', partition: 9_999, items: [item] }
    const { body } = await post('/v1/storage/items.import', imported)
    const [{ id } = { id: '' }] = (body as unknown as { items: { id: string }[] }).items
    const extended = await post('/api/v1/queues/wide/leases/extend', { partition: 9_999, ids: [id] })
    expect(extended).toMatchObject({ status: 200, body: { lease_deadline: expect.any(String) } })
  })

  it('an extend with an invalid item id is refused with ITEM_ID_INVALID', async () => {
    const { post } = await startServer()
    await post('/api/v1/queues', { name: 'q' })
    for (const id of ['', 'short', 'z'.repeat(27), '-'.repeat(27), '0'.repeat(28)]) {
      const answer = await post('/api/v1/queues/q/leases/extend', { partition: 0, ids: ['0'.repeat(27), id] })
      expect(answer).toMatchObject({ status: 400, body: { error: { code: 'ITEM_ID_INVALID' } } })
    }
  })

  it('items are leased by priority, and the oldest first among equal priorities', async () => {
    const { post, lease, texts } = await startServer()
    await post('/api/v1/queues', { name: 'q' })
    const items = [
      { payload: { text: 'low' } },
      { payload: { text: 'high' }, priority: 9 },
      { payload: { text: 'low too' } },
      { payload: { text: 'high too' }, priority: 9 },
    ]
    await post('/api/v1/queues/q/items', { items })
    expect(texts(await lease('q', 4))).toEqual(['high', 'high too', 'low', 'low too'])
  })

  it('a repeated request with the same idempotency key stores nothing and gets the same answer', async () => {
    const { post, lease, texts } = await startServer()
    await post('/api/v1/queues', { name: 'q', partitions: 2 })
    const request = { items: [{ payload: { text: 'charge the card' } }], idempotency_key: 'order-4711' }
    const first = await post('/api/v1/queues/q/items', request)
    const repeat = await post('/api/v1/queues/q/items', request)
    expect(first.body).toMatchObject({ is_repeat: false })
    expect(repeat.body).toEqual({ ...first.body, is_repeat: true })
    const other = await post('/api/v1/queues/q/items', {
      ...request,
      items: [{ payload: { text: 'charge it twice' } }],
    })
    expect(other).toMatchObject({ status: 409, body: { error: { code: 'IDEMPOTENCY_KEY_REUSED' } } })
    expect(JSON.stringify(other.body)).toContain('order-4711')
    expect(texts(await lease('q', 10))).toEqual(['charge the card'])
  })

  it('an extended lease does not end at its first deadline', async () => {
    const { post, lease } = await startServer({ 'test.hooks': true })
    await post('/api/v1/queues', { name: 'q', policy: { lease_timeout: '1m' } })
    await post('/_test/clock', { now: '2030-01-01T00:00:00Z' })
    await post('/api/v1/queues/q/items', { items: [{ payload: { text: 'long work' } }] })
    const { body } = await lease('q', 1)
    const [item] = (body as unknown as { items: { id: string }[] }).items
    const extended = await post('/api/v1/queues/q/leases/extend', {
      partition: 0,
      ids: [item?.id],
      lease_timeout: '10m',
    })
    expect(extended.body).toEqual({ lease_deadline: '2030-01-01T00:10:00.000000Z' })
    await post('/_test/clock', { advance: '9m' })
    const complete = { queue_name: 'q', partition: 0, request_timeout: '5s', ids: [item?.id] }
    expect(await post('/v1/queue.complete', complete)).toEqual({ status: 200, body: { code: 200 } })
    const again = await post('/api/v1/queues/q/leases/extend', { partition: 0, ids: [item?.id] })
    expect(again).toMatchObject({ status: 404, body: { error: { code: 'ITEM_NOT_FOUND' } } })
  })
})

describe('the test hooks', () => {
  it('the test hooks do not exist unless the setting enables them', async () => {
    const { post } = await startServer()
    expect((await post('/_test/clock', { advance: '1m' })).status).toBe(404)
  })

  it('the clock hook answers after all work that became due is done', async () => {
    const { post, call } = await startServer({ 'test.hooks': true })
    await post('/_test/clock', { now: '2030-01-01T00:00:00Z' })
    await post('/api/v1/queues', { name: 'dead' })
    await post('/api/v1/queues', {
      name: 'q',
      policy: { expire_timeout: '1h', lease_timeout: '1m', dead_queue: 'dead' },
    })
    await post('/api/v1/queues/q/items', {
      items: Array.from({ length: 1_000 }, () => ({ payload: { text: 'x' } })),
    })
    await post('/api/v1/queues/q/items', {
      items: Array.from({ length: 500 }, () => ({ payload: { text: 'x' } })),
    })
    expect((await post('/_test/clock', { advance: '1h' })).body).toEqual({
      now: '2030-01-01T01:00:00.000000Z',
    })
    expect((await call('GET', '/api/v1/queues/dead')).body.counts).toMatchObject({ waiting: 1_500 })
    expect((await post('/_test/clock', { resume: true })).body.now).not.toContain('2030')
    expect((await post('/_test/clock', { advance: '-1m' })).status).toBe(400)
    expect((await post('/_test/clock', {})).status).toBe(400)
  })

  it('the hold hook accepts and counts requests to a queue, and executes them when it releases the queue', async () => {
    const { post, lease, texts } = await startServer({ 'test.hooks': true })
    await post('/api/v1/queues', { name: 'q' })
    await post('/_test/hold', { queue_name: 'q', hold: true })
    const produced = ['a', 'b'].map((text) =>
      post('/api/v1/queues/q/items', { items: [{ payload: { text } }] }),
    )
    const leased = lease('q', 2, 'w', '10s')
    const waiting = async () => (await post('/v1/queue.stats', { queue_name: 'q' })).body.logicalQueues
    await expect.poll(waiting).toMatchObject([{ produce_waiting: 2, lease_waiting: 1 }])
    await post('/_test/hold', { queue_name: 'q', hold: false })
    expect((await Promise.all(produced)).map(({ status }) => status)).toEqual([200, 200])
    expect(texts(await leased)).toHaveLength(2)
  })

  it('a released queue executes held requests in order of arrival, so that the second call for an item fails', async () => {
    const { post, lease } = await startServer({ 'test.hooks': true })
    for (const order of [
      ['complete', 'retry'],
      ['retry', 'complete'],
    ]) {
      const queue = `q-${order[0]}`
      await post('/api/v1/queues', { name: queue })
      await post(`/api/v1/queues/${queue}/items`, { items: [{ payload: { text: 'one' } }] })
      const { items } = (await lease(queue, 1)).body as unknown as { items: { id: string }[] }
      const ids = items.map(({ id }) => id)
      const calls: Record<string, () => Promise<Answer>> = {
        complete: () => post('/v1/queue.complete', { queue_name: queue, request_timeout: '9s', ids }),
        retry: () => post('/v1/queue.retry', { queue_name: queue, items: ids.map((id) => ({ id })) }),
      }
      await post('/_test/hold', { queue_name: queue, hold: true })
      const answers: (Promise<Answer> | undefined)[] = []
      for (const [index, name] of order.entries()) {
        answers.push(calls[name]?.())
        const stats = async () => (await post('/v1/queue.stats', { queue_name: queue })).body.logicalQueues
        await expect.poll(stats).toMatchObject([{ complete_waiting: index + 1 }])
      }
      await post('/_test/hold', { queue_name: queue, hold: false })
      expect((await Promise.all(answers)).map((answer) => answer?.status)).toEqual([200, 400])
    }
  })
})
