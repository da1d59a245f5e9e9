import { expect, it } from 'vitest'
import { ksuidToUuid } from '../../src/core/ksuid.ts'
import { describeDesks, unknownId, unknownUuid } from './desk.ts'

describeDesks('a requeue', (desk) => {
  it('sends letters back, and says so again without doing it again', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' }, { message: 'b' })
    const [b = '', a = ''] = await desk.ids()
    const first = await desk.post('/requeue', { ids: [a] })
    expect([first.status, first.body]).toEqual([
      200,
      { ok: true, data: { requeued: [a], skipped: [] }, error: null },
    ])
    expect((await desk.post('/requeue', { ids: [a, b] })).body.data).toEqual({
      requeued: [b],
      skipped: [{ id: a, reason: 'already_queued' }],
    })
    expect((await desk.lease('orders')).length).toBe(2)
    expect(await desk.ids()).toEqual([])
  })

  it('brings the bytes back as they were', async () => {
    await desk.queue('orders')
    const payload = new Uint8Array([0, 255, 254, 10])
    await desk.die('orders', { payload, message: 'undecodable' })
    await desk.post('/requeue', { ids: await desk.ids() })
    const leased = await desk.call('queue.lease', {
      queue_name: 'orders',
      batch_size: 1,
      client_id: 'worker',
      request_timeout: '5s',
    })
    expect(leased.items[0].bytes).toBe(Buffer.from(payload).toString('base64'))
  })

  it('resolves a letter when its item completes', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const [a = ''] = await desk.ids()
    await desk.post('/requeue', { ids: [a] })
    expect((await desk.get(`/messages/${a}`)).body.status).toBe('RETRYING')
    await desk.completeAll('orders')
    expect((await desk.get(`/messages/${a}`)).body.status).toBe('RESOLVED')
    expect((await desk.post('/requeue', { ids: [a] })).body.data).toEqual({
      requeued: [],
      skipped: [{ id: a, reason: 'not_dead_letter' }],
    })
  })

  it('takes the same letter back when its item dies again, and counts', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'network down' })
    const [a = ''] = await desk.ids()
    await desk.post('/requeue', { ids: [a] })
    await desk.failAll('orders', 'auth: refused')
    const { data } = (await desk.get('')).body
    expect(data.items).toMatchObject([{ id: a, reason: 'auth', message: 'auth: refused', retry_count: 1 }])
    expect((await desk.get('/stats')).body.data).toMatchObject({ total: 1, by_reason: { auth: 1 } })
  })

  it('may be repeated by a person also when the retries are used up', async () => {
    await desk.queue('orders', { redrive: { redrives_max: 1 } })
    await desk.die('orders', { message: 'a' })
    const ids = await desk.ids()
    await desk.post('/requeue', { ids })
    await desk.failAll('orders', 'a again')
    expect((await desk.get(`/messages/${ids[0]}`)).body).toMatchObject({ status: 'DEAD', retry_count: 1 })
    expect((await desk.post('/requeue', { ids })).body.data).toEqual({ requeued: ids, skipped: [] })
    await desk.completeAll('orders')
    expect((await desk.get(`/messages/${ids[0]}`)).body).toMatchObject({ status: 'RESOLVED' })
  })

  it('knows letters by their UUIDs, too, and each once', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const [a = ''] = await desk.ids()
    const uuid = ksuidToUuid(a)
    const { body } = await desk.post('/requeue', { ids: [uuid, ` ${a} `, uuid.toUpperCase(), a] })
    expect(body.data).toEqual({ requeued: [a], skipped: [] })
  })

  it.each([unknownId, unknownUuid, '999999'])('of an unknown id is refused whole: %s', async (unknown) => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const ids = await desk.ids()
    const { status, headers, body } = await desk.post('/requeue', { ids: [...ids, unknown] })
    expect(status).toBe(404)
    expect(body).toEqual({
      ok: false,
      error: { code: 'NOT_FOUND', message: `there is no dead letter ${unknown}` },
    })
    expect(headers.get('x-debug-id')).not.toBe(null)
    expect(await desk.ids()).toEqual(ids)
  })

  it('of what is no letter but an item is refused, too', async () => {
    await desk.queue('orders')
    const { body } = await desk.ask('POST', '/api/v1/queues/orders/items', { items: [{ text: 'x' }] })
    expect((await desk.post('/requeue', { ids: body.ids })).status).toBe(404)
  })

  it('checks the list before it looks for any of it', async () => {
    const refused = async (ids: unknown) => {
      const { status, body } = await desk.post('/requeue', { ids })
      return [status, body.error.code, body.error.meta.fields[0].name]
    }
    expect(await refused(['abc', unknownId])).toEqual([400, 'VALIDATION_ERROR', 'ids[0]'])
    expect(await refused([unknownId, ' '])).toEqual([400, 'VALIDATION_ERROR', 'ids[1]'])
    // The bound counts what was given, repeats and nonsense included.
    expect(await refused(Array(501).fill(unknownId))).toEqual([400, 'VALIDATION_ERROR', 'ids'])
    expect(await refused(Array(501).fill('abc'))).toEqual([400, 'VALIDATION_ERROR', 'ids'])
    expect((await desk.post('/requeue', { ids: Array(500).fill(unknownId) })).status).toBe(404)
  })

  it('skips what cannot go, changes nothing about it, and sends the rest', async () => {
    await desk.queue('orders')
    await desk.queue('gone')
    await desk.die('orders', { message: 'purged' }, { message: 'fine' })
    await desk.die('gone', { message: 'no way back' })
    const [stuck = '', fine = '', purged = ''] = await desk.ids()
    await desk.post('/purge', { ids: [purged] })
    await desk.ask('DELETE', '/api/v1/queues/gone')
    const before = (await desk.get('?topic=gone')).body.data.items
    expect((await desk.post('/requeue', { ids: [purged, stuck, fine] })).body.data).toEqual({
      requeued: [fine],
      skipped: [
        { id: purged, reason: 'not_dead_letter' },
        { id: stuck, reason: 'enqueue_failed' },
      ],
    })
    expect((await desk.get('?topic=gone')).body.data.items).toEqual(before)
    expect(before).toMatchObject([{ message: 'no way back', retry_count: 0 }])
  })

  it('by two callers at once sends each letter once', async () => {
    await desk.queue('orders')
    const items = Array.from({ length: 200 }, (_, index) => ({ text: String(index) }))
    await desk.ask('POST', '/api/v1/queues/orders/items', { items })
    await desk.failAll('orders', 'all of them')
    const ids: string[] = []
    for (const page of [1, 2]) {
      const { data } = (await desk.get(`?page_size=100&page=${page}`)).body
      ids.push(...data.items.map(({ id }: { id: string }) => id))
    }
    const answers = await Promise.all(
      [ids, ids.toReversed(), ids].map((given) => desk.post('/requeue', { ids: given })),
    )
    const requeued = answers.flatMap(({ body }) => body.data.requeued)
    expect(requeued.toSorted()).toEqual(ids.toSorted())
    for (const { body } of answers) {
      const { requeued, skipped } = body.data
      expect(requeued.length + skipped.length).toBe(200)
      expect(new Set(skipped.map(({ reason }: { reason: string }) => reason)).size).toBeLessThanOrEqual(1)
    }
    expect((await desk.lease('orders')).length).toBe(200)
  })

  it('is said in the log, with who did it', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    await desk.post('/requeue', { ids: await desk.ids() })
    expect(desk.lines.find((line) => line.event === 'dlq.requeue')).toMatchObject({
      requeued: 1,
      skipped: 0,
      actor: 'anonymous',
      duration_ms: expect.any(Number),
    })
  })
})
