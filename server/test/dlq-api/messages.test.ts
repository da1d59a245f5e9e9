import { expect, it } from 'vitest'
import { ksuidToUuid } from '../../src/core/ksuid.ts'
import { type Answer, type Desk, describeDesks, unknownId, unknownUuid } from './desk.ts'

const refused = (code: string, message: unknown = expect.any(String), details: unknown = []) => ({
  error: { code, message, request_id: expect.any(String), details },
})

/** The messages of a topic, newest first. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at the fields they expect
async function messagesOf(desk: Desk, topic: string): Promise<any[]> {
  return (await desk.get(`/${topic}?page_size=100`)).body.messages
}

describeDesks('a message', (desk) => {
  it('has exactly the fields of the contract', async () => {
    await desk.queue('orders')
    const diedAt = await desk.now()
    await desk.die('orders', { text: '{"id": 1}', message: 'network timeout' })
    const [message] = await messagesOf(desk, 'orders')
    expect(message).toEqual({
      id: ksuidToUuid((await desk.ids())[0] ?? ''),
      original_topic: 'orders',
      error_message: 'network timeout',
      retry_count: 0,
      max_retries: 3,
      payload: { id: 1 },
      status: 'PENDING',
      created_at: diedAt,
      updated_at: diedAt,
      last_retry_at: null,
    })
    expect((await desk.get(`/messages/${message.id}`)).body).toEqual(message)
  })

  it('is known by its UUID in either case, and by the id that other lists show', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const [{ id }] = (await messagesOf(desk, 'orders')) as [{ id: string }]
    const [rootId = ''] = await desk.ids()
    for (const known of [id, id.toUpperCase(), rootId]) {
      expect((await desk.get(`/messages/${known}`)).body).toMatchObject({ id })
    }
  })

  it.each(['abc', '41', `${unknownUuid}0`, unknownUuid.replaceAll('-', ''), 'z'.repeat(27), '%00'])(
    'with an id that is none is refused: %s',
    async (id) => {
      for (const answer of [
        await desk.get(`/messages/${id}`),
        await desk.post(`/messages/${id}/retry`, {}),
        await desk.delete(`/messages/${id}`),
      ]) {
        const details = [{ field: 'id', reason: 'invalid', message: expect.any(String) }]
        expect([answer.status, answer.body]).toEqual([
          400,
          refused('SYS_DLQ_VALIDATION_ERROR', expect.any(String), details),
        ])
      }
    },
  )

  it.each([unknownUuid, unknownId])('that is not there cannot be read or retried: %s', async (id) => {
    for (const answer of [await desk.get(`/messages/${id}`), await desk.post(`/messages/${id}/retry`)]) {
      expect([answer.status, answer.body]).toEqual([
        404,
        refused('SYS_DLQ_NOT_FOUND', `there is no message ${id}`),
      ])
    }
  })

  it('shows any payload, and what cannot be decoded breaks no page', async () => {
    await desk.queue('orders')
    await desk.die(
      'orders',
      { text: '' },
      { text: '"text"' },
      { text: '{"broken":' },
      { payload: new Uint8Array([0xff, 0xfe]) },
      { text: '12345678901234567890' },
    )
    expect((await messagesOf(desk, 'orders')).map(({ payload }) => payload)).toEqual([
      Number('12345678901234567890'),
      { raw_payload: '2 bytes that are not UTF-8', raw_payload_base64: '//4=' },
      { raw_payload: '{"broken":' },
      'text',
      null,
    ])
    const response = await fetch(`${desk.url}/api/v1/dlq/orders?page_size=1`)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await response.text()).toContain('"payload":12345678901234567890,')
    const [{ error_message }] = (await messagesOf(desk, 'orders')) as [{ error_message: string }]
    expect(error_message).not.toBe('')
  })
})

describeDesks('a retry', (desk) => {
  const anOrder = async (deadPolicy = {}): Promise<string> => {
    await desk.queue('orders', deadPolicy)
    await desk.die('orders', { text: '{"order":1}', message: 'first' })
    return (await messagesOf(desk, 'orders'))[0].id
  }
  const retry = (id: string): Promise<Answer> => desk.post(`/messages/${id}/retry`, {})
  const get = async (id: string) => (await desk.get(`/messages/${id}`)).body

  it('sends a message back: it is RETRYING until its item ends', async () => {
    const id = await anOrder()
    const retriedAt = await desk.now()
    const { status, body } = await retry(id)
    expect(status).toBe(200)
    expect(body).toEqual({
      message: {
        id,
        original_topic: 'orders',
        error_message: 'first',
        retry_count: 0,
        max_retries: 3,
        payload: { order: 1 },
        status: 'RETRYING',
        created_at: expect.any(String),
        updated_at: retriedAt,
        last_retry_at: retriedAt,
      },
    })
    await desk.advance('1m')
    expect(await desk.completeAll('orders')).toBe(1)
    expect(await get(id)).toMatchObject({ status: 'RESOLVED', retry_count: 0, last_retry_at: retriedAt })
  })

  it('needs no body', async () => {
    expect((await desk.post(`/messages/${await anOrder()}/retry`)).status).toBe(200)
  })

  it('that fails makes it PENDING with one more retry, and DEAD at the bound', async () => {
    const id = await anOrder()
    for (const [count, status] of [
      [1, 'PENDING'],
      [2, 'PENDING'],
      [3, 'DEAD'],
    ] as const) {
      expect((await retry(id)).status).toBe(200)
      await desk.failAll('orders', `time ${count}`)
      expect(await get(id)).toMatchObject({ status, retry_count: count, error_message: `time ${count}` })
    }
    const { status, body } = await retry(id)
    expect([status, body]).toEqual([
      409,
      refused('SYS_DLQ_CONFLICT', `message ${id} is not retryable: status DEAD, retries 3/3`),
    ])
    expect((await messagesOf(desk, 'orders')).length).toBe(1)
  })

  it('is refused while another is under way, and once it is resolved', async () => {
    const id = await anOrder()
    await retry(id)
    const { status, body } = await retry(id)
    expect([status, body]).toEqual([
      409,
      refused('SYS_DLQ_CONFLICT', `message ${id} is not retryable: status RETRYING, retries 0/3`),
    ])
    expect(await desk.completeAll('orders')).toBe(1)
    expect((await retry(id)).body.error.message).toBe(
      `message ${id} is not retryable: status RESOLVED, retries 0/3`,
    )
  })

  it('is never possible where no retries are allowed', async () => {
    const id = await anOrder({ redrive: { redrives_max: 0 } })
    const { status, body } = await retry(id)
    expect([status, body.error.message]).toEqual([
      409,
      `message ${id} is not retryable: status PENDING, retries 0/0`,
    ])
  })

  it('is 503 and changes nothing when there is nowhere to send it', async () => {
    const id = await anOrder()
    const before = await get(id)
    await desk.ask('DELETE', '/api/v1/queues/orders')
    const { status, body } = await retry(id)
    expect([status, body]).toEqual([
      503,
      refused('SYS_DLQ_PROCESS_FAILED', `there is no queue "orders" to send message ${id} to`),
    ])
    expect(await get(id)).toEqual(before)
  })

  it.each([
    [
      {},
      409,
      'came from its own dead queue, or does not say where from: redrive it to a queue that you name: status PENDING, retries 0/3',
    ],
    [
      { original_topic: 'other.dead' },
      409,
      'came from a dead queue and is never sent to one: status PENDING, retries 0/3',
    ],
    [
      { original_topic: 'orders', cluster: 'eu' },
      503,
      'came from topic "orders" of cluster "eu", and nothing here sends to that',
    ],
    [
      { original_topic: 'orders', original_offset: 7, cluster: 'eu' },
      503,
      'came from topic "orders" of cluster "eu", and nothing here sends to that',
    ],
  ])('says why, of what has no way back by itself: %j', async (envelope, status, why) => {
    for (const queue of ['orders', 'other']) await desk.queue(queue)
    const letters = [{ original_value: 'x', ...envelope }]
    const captured = await desk.ask('POST', '/api/v1/letters', { queue: 'orders.dead', letters })
    const id = ksuidToUuid(captured.body.letters[0].id)
    const before = await get(id)
    const answer = await retry(id)
    expect([answer.status, answer.body.error.message]).toEqual([status, `message ${id} ${why}`])
    expect(await get(id)).toEqual(before)
  })

  it.each([
    ['a topic', {}],
    ['a topic and where it was there', { original_partition: 2, original_offset: 7 }],
  ])(
    'finds the queue that an envelope names as %s, and is 503 only while there is none',
    async (_, place) => {
      await desk.queue('captured')
      const letters = [{ original_topic: 'refunds', ...place, original_value: 'x' }]
      const captured = await desk.ask('POST', '/api/v1/letters', { queue: 'captured.dead', letters })
      const { id } = captured.body.letters[0]
      expect((await retry(id)).status).toBe(503)
      await desk.queue('refunds')
      expect((await retry(id)).status).toBe(200)
      expect(await desk.lease('refunds')).toHaveLength(1)
    },
  )

  it('by several callers at once is one retry', async () => {
    const id = await anOrder()
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => retry(id)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409])
    expect((await desk.lease('orders')).length).toBe(1)
  })
})

describeDesks('a delete', (desk) => {
  it('gives a message up, as often as it is asked', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const [{ id }] = (await messagesOf(desk, 'orders')) as [{ id: string }]
    for (const _ of [1, 2]) {
      const { status, body } = await desk.delete(`/messages/${id}`)
      expect([status, body]).toEqual([200, { id }])
    }
    expect((await desk.get(`/messages/${id}`)).body).toEqual(
      refused('SYS_DLQ_NOT_FOUND', `message ${id} was given up`),
    )
    expect((await desk.post(`/messages/${id}/retry`)).status).toBe(404)
    expect((await desk.get('/orders')).body.pagination.total_count).toBe(0)
  })

  it('keeps who did it and why', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const [rootId = ''] = await desk.ids()
    await desk.delete(`/messages/${ksuidToUuid(rootId)}?reason=a+test+order`)
    const { body } = await desk.ask('GET', `/api/v1/letters/${rootId}`)
    expect(JSON.stringify(body)).toContain('a test order')
  })

  it.each([unknownUuid, unknownId])('of what is not there is done already: %s', async (id) => {
    const { status, body } = await desk.delete(`/messages/${id}`)
    expect([status, body]).toEqual([200, { id }])
  })

  it('of what is under way or resolved is refused', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const [{ id }] = (await messagesOf(desk, 'orders')) as [{ id: string }]
    await desk.post(`/messages/${id}/retry`)
    const { status, body } = await desk.delete(`/messages/${id}`)
    expect([status, body]).toEqual([
      409,
      refused('SYS_DLQ_CONFLICT', `message ${id} cannot be deleted: status RETRYING, retries 0/3`),
    ])
    await desk.completeAll('orders')
    expect((await desk.delete(`/messages/${id}`)).status).toBe(409)
    expect((await desk.get(`/messages/${id}`)).body.status).toBe('RESOLVED')
    expect((await desk.post(`/messages/${id}/retry`)).status).toBe(409)
    // What was refused leaves no row as if it were done.
    const { body: letter } = await desk.ask('GET', `/api/v1/letters/${id}`)
    expect(letter.audit.map(({ action }: { action: string }) => action)).toEqual(['letter.redrive'])
  })
})
