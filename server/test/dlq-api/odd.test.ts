import { expect, it } from 'vitest'
import { ksuidToUuid } from '../../src/core/ksuid.ts'
import fc from '../fast-check.ts'
import { describeDesks, unknownId, unknownUuid } from './desk.ts'

describeDesks('letters from elsewhere', (desk) => {
  it('are messages of their topic, and stay as they are while there is no way back', async () => {
    await desk.queue('orders')
    const captured = await desk.ask('POST', '/api/v1/letters', {
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
    const before = (await desk.get('/payments.v1')).body.messages
    expect(before).toMatchObject([
      { original_topic: 'payments.v1', error_message: 'network timeout', payload: { amount: 7 } },
    ])
    expect((await desk.post('/requeue', { ids: [id] })).body.data.skipped).toEqual([
      { id, reason: 'enqueue_failed' },
    ])
    expect((await desk.post(`/messages/${id}/retry`)).status).toBe(503)
    expect((await desk.get('/payments.v1')).body.messages).toEqual(before)
  })
})

describeDesks('letters that a worker of their dead queue holds', (desk) => {
  it('are on their way: neither sent back nor given up', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const ids = await desk.ids()
    expect((await desk.lease('orders.dead')).length).toBe(1)
    expect((await desk.post('/requeue', { ids })).body.data).toEqual({
      requeued: [],
      skipped: [{ id: ids[0], reason: 'already_queued' }],
    })
    expect((await desk.post('/purge', { ids })).body.data).toEqual({ purged: 0 })
    expect((await desk.post(`/messages/${ids[0]}/retry`)).status).toBe(409)
    expect((await desk.delete(`/messages/${ids[0]}`)).status).toBe(409)
  })
})

describeDesks('odd requests', (desk) => {
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

  it('are answered as documented: never by a defect, and never with something half done', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' }, { payload: new Uint8Array([255]), message: 'b' })
    const ids = await desk.ids()
    const id = fc.oneof({ weight: 3, arbitrary: text }, fc.constantFrom(...ids.map(ksuidToUuid)))
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
        // What really is in the past of these letters.
        .filter(({ older_than }) => typeof older_than !== 'string' || !/^9999/.test(older_than))
        .map((given) => ['POST', '/api/v1/dlq/purge', given] as const),
      value.map((given) => ['POST', '/api/v1/dlq/purge', given] as const),
    )
    await fc.assert(
      fc.asyncProperty(request, async ([method, path, body]) => {
        const { status } = await desk.ask(method, path, body ?? undefined)
        expect(status).toBeLessThan(500)
      }),
      { numRuns: 400 },
    )
    expect(await desk.ids()).toEqual(ids)
    expect(desk.lines.filter((line) => line.level === 'error')).toEqual([])
  }, 60_000)
})
