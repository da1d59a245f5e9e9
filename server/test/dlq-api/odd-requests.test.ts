import { expect, it } from 'vitest'
import { convertToUuid } from '../../src/core/ids/ksuid.ts'
import fc from '../fast-check.ts'
import { describeDlqServers, unknownId, unknownUuid } from './servers.ts'

describeDlqServers('letters of a topic without a queue', (api) => {
  it('a captured letter is a message of its topic, and does not change while no queue has the name of the topic', async () => {
    await api.createQueue('orders')
    const captured = await api.request('POST', '/api/v1/letters', {
      queue: 'orders.dead',
      letters: [
        {
          source_id: 'payments/0/42',
          original_topic: 'payments.v1',
          original_value: { amount: 7 },
          error_details: { exception_class: 'Timeout', message: 'network timeout' },
        },
      ],
    })
    const [{ id }] = captured.body.letters as [{ id: string }]
    const before = (await api.get('/payments.v1')).body.messages
    expect(before).toMatchObject([
      { original_topic: 'payments.v1', error_message: 'network timeout', payload: { amount: 7 } },
    ])
    expect((await api.post('/requeue', { ids: [id] })).body.data.skipped).toEqual([
      { id, reason: 'enqueue_failed' },
    ])
    expect((await api.post(`/messages/${id}/retry`)).status).toBe(503)
    expect((await api.get('/payments.v1')).body.messages).toEqual(before)
  })
})

describeDlqServers('leased letters', (api) => {
  it('a letter that a worker has leased from its dead queue is neither redriven nor discarded', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const ids = await api.listIds()
    expect((await api.lease('orders.dead')).length).toBe(1)
    expect((await api.post('/requeue', { ids })).body.data).toEqual({
      requeued: [],
      skipped: [{ id: ids[0], reason: 'already_queued' }],
    })
    expect((await api.post('/purge', { ids })).body.data).toMatchObject({ purged: 0 })
    expect((await api.post(`/messages/${ids[0]}/retry`)).status).toBe(409)
    expect((await api.delete(`/messages/${ids[0]}`)).status).toBe(409)
  })
})

describeDlqServers('odd requests', (api) => {
  const traps = [
    ...['', ' ', '0', '-1', '1.5', '1e9', '9'.repeat(40), 'NaN', 'null', 'true', '[]', '%', "'", '"', '\\'],
    ...[
      '\u0000',
      '\ud800',
      'ﬀ',
      'a'.repeat(5_000),
      '../..',
      ';',
      '2025-02-29',
      '2025-02-28T24:00',
      '0000-01-01',
    ],
    ...['9999-12-31T23:59:59.999999999+00:00', '__proto__', 'constructor', unknownId, unknownUuid],
  ]
  const names = ['page', 'page_size', 'reason', 'from', 'to', 'order_by', 'order_dir', 'topic', 'x']
  const text = fc.oneof(fc.constantFrom(...traps), fc.string({ unit: 'binary', maxLength: 30 }))
  const value = fc.oneof(text, fc.constantFrom<unknown>(null, 0, 1.5, true, {}, [], [[]], ['x'], [null]))

  it('random requests get no 5xx, log no error and change no letter', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' }, { payload: new Uint8Array([255]), message: 'b' })
    const ids = await api.listIds()
    const id = fc.oneof({ weight: 3, arbitrary: text }, fc.constantFrom(...ids.map(convertToUuid)))
    const encode = (part: string): string => encodeURIComponent(part.toWellFormed())
    const query = fc
      .array(fc.tuple(fc.constantFrom(...names), text), { maxLength: 4 })
      .map((parts) => parts.map(([name, part]) => `${name}=${encode(part)}`).join('&'))
    const request = fc.oneof(
      query.map((parts) => ['GET', `/api/v1/dlq?${parts}`] as const),
      fc
        .tuple(text, query)
        .map(([topic, parts]) => ['GET', `/api/v1/dlq/${encode(topic)}?${parts}`] as const),
      id.map((given) => ['GET', `/api/v1/dlq/messages/${encode(given)}`] as const),
      text.map((given) => ['POST', `/api/v1/dlq/messages/${encode(given)}/retry`] as const),
      text.map((given) => ['DELETE', `/api/v1/dlq/messages/${encode(given)}`] as const),
      fc
        .tuple(value, value)
        .map(
          ([given, other]) => ['POST', '/api/v1/dlq/requeue', { ids: given, [String(other)]: 1 }] as const,
        ),
      fc
        .array(value, { maxLength: 3 })
        .map((given) => ['POST', '/api/v1/dlq/requeue', { ids: given }] as const),
      fc
        .record({ ids: value, older_than: value, reason: value }, { requiredKeys: [] })
        // Excludes times after the death of the letters, which would purge them.
        .filter(({ older_than }) => typeof older_than !== 'string' || !/^9999/.test(older_than))
        .map((given) => ['POST', '/api/v1/dlq/purge', given] as const),
      value.map((given) => ['POST', '/api/v1/dlq/purge', given] as const),
    )
    await fc.assert(
      fc.asyncProperty(request, async ([method, path, body]) => {
        const { status } = await api.request(method, path, body ?? undefined)
        expect(status).toBeLessThan(500)
      }),
      { numRuns: 400 },
    )
    expect(await api.listIds()).toEqual(ids)
    expect(api.lines.filter((line) => line.level === 'error')).toEqual([])
  }, 60_000)
})
