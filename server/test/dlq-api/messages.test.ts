import { expect, it } from 'vitest'
import { convertToUuid } from '../../src/core/ids/ksuid.ts'
import { type Answer, type DlqServer, describeDlqServers, unknownId, unknownUuid } from './servers.ts'

const errorBody = (code: string, message: unknown = expect.any(String), details: unknown = []) => ({
  error: { code, message, request_id: expect.any(String), details },
})

/** Lists the messages of a topic, newest first. */
// biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect
async function listMessages(api: DlqServer, topic: string): Promise<any[]> {
  return (await api.get(`/${topic}?page_size=100`)).body.messages
}

describeDlqServers('a message', (api) => {
  it('a message has exactly the fields of the contract', async () => {
    await api.createQueue('orders')
    const deadLetteredAt = await api.now()
    await api.createLetters('orders', { text: '{"id": 1}', message: 'network timeout' })
    const [message] = await listMessages(api, 'orders')
    expect(message).toEqual({
      id: convertToUuid((await api.listIds())[0] ?? ''),
      original_topic: 'orders',
      error_message: 'network timeout',
      retry_count: 0,
      max_retries: 3,
      payload: { id: 1 },
      status: 'PENDING',
      created_at: deadLetteredAt,
      updated_at: deadLetteredAt,
      last_retry_at: null,
    })
    expect((await api.get(`/messages/${message.id}`)).body).toEqual(message)
  })

  it('a message is found by its UUID in any case and by its letter id', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const [{ id }] = (await listMessages(api, 'orders')) as [{ id: string }]
    const [rootId = ''] = await api.listIds()
    for (const known of [id, id.toUpperCase(), rootId]) {
      expect((await api.get(`/messages/${known}`)).body).toMatchObject({ id })
    }
  })

  it.each(['abc', '41', `${unknownUuid}0`, unknownUuid.replaceAll('-', ''), 'z'.repeat(27), '%00'])(
    'a malformed message id is refused: %s',
    async (id) => {
      for (const answer of [
        await api.get(`/messages/${id}`),
        await api.post(`/messages/${id}/retry`, {}),
        await api.delete(`/messages/${id}`),
      ]) {
        const details = [{ field: 'id', reason: 'invalid', message: expect.any(String) }]
        expect([answer.status, answer.body]).toEqual([
          400,
          errorBody('SYS_DLQ_VALIDATION_ERROR', expect.any(String), details),
        ])
      }
    },
  )

  it.each([unknownUuid, unknownId])('an unknown message is not found: %s', async (id) => {
    for (const answer of [await api.get(`/messages/${id}`), await api.post(`/messages/${id}/retry`)]) {
      expect([answer.status, answer.body]).toEqual([
        404,
        errorBody('SYS_DLQ_NOT_FOUND', `message ${id} does not exist`),
      ])
    }
  })

  it('a page shows payloads of any form, also payloads that cannot be decoded', async () => {
    await api.createQueue('orders')
    await api.createLetters(
      'orders',
      { text: '' },
      { text: '"text"' },
      { text: '{"broken":' },
      { payload: new Uint8Array([0xff, 0xfe]) },
      { text: '12345678901234567890' },
    )
    expect((await listMessages(api, 'orders')).map(({ payload }) => payload)).toEqual([
      Number('12345678901234567890'),
      { raw_payload: '2 bytes that are not UTF-8', raw_payload_base64: '//4=' },
      { raw_payload: '{"broken":' },
      'text',
      null,
    ])
    const response = await fetch(`${api.url}/api/v1/dlq/orders?page_size=1`)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await response.text()).toContain('"payload":12345678901234567890,')
    const [{ error_message }] = (await listMessages(api, 'orders')) as [{ error_message: string }]
    expect(error_message).not.toBe('')
  })
})

describeDlqServers('a retry', (api) => {
  const createOrder = async (deadPolicy = {}): Promise<string> => {
    await api.createQueue('orders', deadPolicy)
    await api.createLetters('orders', { text: '{"order":1}', message: 'first' })
    return (await listMessages(api, 'orders'))[0].id
  }
  const retry = (id: string): Promise<Answer> => api.post(`/messages/${id}/retry`, {})
  const get = async (id: string) => (await api.get(`/messages/${id}`)).body

  it('a retried message is RETRYING until its item ends', async () => {
    const id = await createOrder()
    const retriedAt = await api.now()
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
    await api.advance('1m')
    expect(await api.completeAll('orders')).toBe(1)
    expect(await get(id)).toMatchObject({ status: 'RESOLVED', retry_count: 0, last_retry_at: retriedAt })
  })

  it('a retry needs no body', async () => {
    expect((await api.post(`/messages/${await createOrder()}/retry`)).status).toBe(200)
  })

  it('a retried message that fails again is PENDING, and DEAD when its retries are exhausted', async () => {
    const id = await createOrder()
    for (const [count, status] of [
      [1, 'PENDING'],
      [2, 'PENDING'],
      [3, 'DEAD'],
    ] as const) {
      expect((await retry(id)).status).toBe(200)
      await api.failAll('orders', `time ${count}`)
      expect(await get(id)).toMatchObject({ status, retry_count: count, error_message: `time ${count}` })
    }
    const { status, body } = await retry(id)
    expect([status, body]).toEqual([
      409,
      errorBody('SYS_DLQ_CONFLICT', `message ${id} is not retryable: status DEAD, retries 3/3`),
    ])
    expect((await listMessages(api, 'orders')).length).toBe(1)
  })

  it('a retry is refused while the message is RETRYING and after it is RESOLVED', async () => {
    const id = await createOrder()
    await retry(id)
    const { status, body } = await retry(id)
    expect([status, body]).toEqual([
      409,
      errorBody('SYS_DLQ_CONFLICT', `message ${id} is not retryable: status RETRYING, retries 0/3`),
    ])
    expect(await api.completeAll('orders')).toBe(1)
    expect((await retry(id)).body.error.message).toBe(
      `message ${id} is not retryable: status RESOLVED, retries 0/3`,
    )
  })

  it('a retry is refused if the policy allows no redrives', async () => {
    const id = await createOrder({ redrive: { redrives_max: 0 } })
    const { status, body } = await retry(id)
    expect([status, body.error.message]).toEqual([
      409,
      `message ${id} is not retryable: status PENDING, retries 0/0`,
    ])
  })

  it('a retry to a deleted queue is 503 and changes nothing', async () => {
    const id = await createOrder()
    const before = await get(id)
    await api.request('DELETE', '/api/v1/queues/orders')
    const { status, body } = await retry(id)
    expect([status, body]).toEqual([
      503,
      errorBody(
        'SYS_DLQ_PROCESS_FAILED',
        `queue "orders" does not exist, so message ${id} cannot be sent to it`,
      ),
    ])
    expect(await get(id)).toEqual(before)
  })

  it.each([
    [
      {},
      409,
      'has no origin other than its dead queue; redrive it with POST /api/v1/letters/{id}/redrive and a target: status PENDING, retries 0/3',
    ],
    [
      { original_topic: 'other.dead' },
      409,
      'came from a dead queue, and a redrive never goes to a dead queue: status PENDING, retries 0/3',
    ],
    [
      { original_topic: 'orders', cluster: 'eu' },
      503,
      'came from topic "orders" of cluster "eu", which this server cannot send to',
    ],
    [
      { original_topic: 'orders', original_offset: 7, cluster: 'eu' },
      503,
      'came from topic "orders" of cluster "eu", which this server cannot send to',
    ],
  ])(
    'a letter without a queue as its origin is not retried, with the reason: %j',
    async (envelope, status, why) => {
      for (const queue of ['orders', 'other']) await api.createQueue(queue)
      const letters = [{ original_value: 'x', ...envelope }]
      const captured = await api.request('POST', '/api/v1/letters', { queue: 'orders.dead', letters })
      const id = convertToUuid(captured.body.letters[0].id)
      const before = await get(id)
      const answer = await retry(id)
      expect([answer.status, answer.body.error.message]).toEqual([status, `message ${id} ${why}`])
      expect(await get(id)).toEqual(before)
    },
  )

  it.each([
    ['a topic', {}],
    ['a topic with partition and offset', { original_partition: 2, original_offset: 7 }],
  ])(
    'a retry finds the queue that an envelope names as %s, and is 503 only until that queue exists',
    async (_, position) => {
      await api.createQueue('captured')
      const letters = [{ original_topic: 'refunds', ...position, original_value: 'x' }]
      const captured = await api.request('POST', '/api/v1/letters', { queue: 'captured.dead', letters })
      const { id } = captured.body.letters[0]
      expect((await retry(id)).status).toBe(503)
      await api.createQueue('refunds')
      expect((await retry(id)).status).toBe(200)
      expect(await api.lease('refunds')).toHaveLength(1)
    },
  )

  it('concurrent retries of a message send it once', async () => {
    const id = await createOrder()
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => retry(id)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409])
    expect((await api.lease('orders')).length).toBe(1)
  })
})

describeDlqServers('a delete', (api) => {
  it('a deleted message is discarded, and deleting it again succeeds', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const [{ id }] = (await listMessages(api, 'orders')) as [{ id: string }]
    for (const _ of [1, 2]) {
      const { status, body } = await api.delete(`/messages/${id}`)
      expect([status, body]).toEqual([200, { id }])
    }
    expect((await api.get(`/messages/${id}`)).body).toEqual(
      errorBody('SYS_DLQ_NOT_FOUND', `message ${id} was discarded`),
    )
    expect((await api.post(`/messages/${id}/retry`)).status).toBe(404)
    expect((await api.get('/orders')).body.pagination.total_count).toBe(0)
  })

  it('the letter keeps the reason of its deletion', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const [rootId = ''] = await api.listIds()
    await api.delete(`/messages/${convertToUuid(rootId)}?reason=a+test+order`)
    const { body } = await api.request('GET', `/api/v1/letters/${rootId}`)
    expect(JSON.stringify(body)).toContain('a test order')
  })

  it.each([unknownUuid, unknownId])('deleting an unknown message succeeds: %s', async (id) => {
    const { status, body } = await api.delete(`/messages/${id}`)
    expect([status, body]).toEqual([200, { id }])
  })

  it('deleting a message that is RETRYING or RESOLVED is refused', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const [{ id }] = (await listMessages(api, 'orders')) as [{ id: string }]
    await api.post(`/messages/${id}/retry`)
    const { status, body } = await api.delete(`/messages/${id}`)
    expect([status, body]).toEqual([
      409,
      errorBody('SYS_DLQ_CONFLICT', `message ${id} cannot be deleted: status RETRYING, retries 0/3`),
    ])
    await api.completeAll('orders')
    expect((await api.delete(`/messages/${id}`)).status).toBe(409)
    expect((await api.get(`/messages/${id}`)).body.status).toBe('RESOLVED')
    expect((await api.post(`/messages/${id}/retry`)).status).toBe(409)
    // A refused deletion writes no audit row.
    const { body: letter } = await api.request('GET', `/api/v1/letters/${id}`)
    expect(letter.audit.map(({ action }: { action: string }) => action)).toEqual(['letter.redrive'])
  })
})
