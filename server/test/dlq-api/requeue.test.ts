import { expect, it } from 'vitest'
import { convertToUuid } from '../../src/core/ids/ksuid.ts'
import { describeDlqServers, unknownId, unknownUuid } from './servers.ts'

describeDlqServers('a requeue', (api) => {
  it('a requeue redrives letters, and a repeated requeue skips them', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' }, { message: 'b' })
    const [b = '', a = ''] = await api.listIds()
    const first = await api.post('/requeue', { ids: [a] })
    expect([first.status, first.body]).toEqual([
      200,
      { ok: true, data: { requeued: [a], skipped: [] }, error: null },
    ])
    expect((await api.post('/requeue', { ids: [a, b] })).body.data).toEqual({
      requeued: [b],
      skipped: [{ id: a, reason: 'already_queued' }],
    })
    expect((await api.lease('orders')).length).toBe(2)
    expect(await api.listIds()).toEqual([])
  })

  it('a requeued item has the original bytes', async () => {
    await api.createQueue('orders')
    const payload = new Uint8Array([0, 255, 254, 10])
    await api.createLetters('orders', { payload, message: 'undecodable' })
    await api.post('/requeue', { ids: await api.listIds() })
    const leased = await api.call('queue.lease', {
      queue_name: 'orders',
      batch_size: 1,
      client_id: 'worker',
      request_timeout: '5s',
    })
    expect(leased.items[0].bytes).toBe(Buffer.from(payload).toString('base64'))
  })

  it('a requeued letter is RESOLVED when its item is completed', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const [a = ''] = await api.listIds()
    await api.post('/requeue', { ids: [a] })
    expect((await api.get(`/messages/${a}`)).body.status).toBe('RETRYING')
    await api.completeAll('orders')
    expect((await api.get(`/messages/${a}`)).body.status).toBe('RESOLVED')
    expect((await api.post('/requeue', { ids: [a] })).body.data).toEqual({
      requeued: [],
      skipped: [{ id: a, reason: 'not_dead_letter' }],
    })
  })

  it('a requeued item that dies again returns to the same letter with a higher retry_count', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'network down' })
    const [a = ''] = await api.listIds()
    await api.post('/requeue', { ids: [a] })
    await api.failAll('orders', 'auth: refused')
    const { data } = (await api.get('')).body
    expect(data.items).toMatchObject([{ id: a, reason: 'auth', message: 'auth: refused', retry_count: 2 }])
    expect((await api.get('/stats')).body.data).toMatchObject({ total: 1, by_reason: { auth: 1 } })
  })

  it('a requeue can redrive a DEAD letter', async () => {
    await api.createQueue('orders', { redrive: { redrives_max: 1 } })
    await api.createLetters('orders', { message: 'a' })
    const ids = await api.listIds()
    await api.post('/requeue', { ids })
    await api.failAll('orders', 'a again')
    expect((await api.get(`/messages/${ids[0]}`)).body).toMatchObject({ status: 'DEAD', retry_count: 1 })
    expect((await api.post('/requeue', { ids })).body.data).toEqual({ requeued: ids, skipped: [] })
    await api.completeAll('orders')
    expect((await api.get(`/messages/${ids[0]}`)).body).toMatchObject({ status: 'RESOLVED' })
  })

  it('a requeue accepts UUIDs and redrives each letter once', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const [a = ''] = await api.listIds()
    const uuid = convertToUuid(a)
    const { body } = await api.post('/requeue', { ids: [uuid, ` ${a} `, uuid.toUpperCase(), a] })
    expect(body.data).toEqual({ requeued: [a], skipped: [] })
  })

  it.each([unknownId, unknownUuid, '999999'])(
    'a requeue with an unknown id is refused completely: %s',
    async (unknown) => {
      await api.createQueue('orders')
      await api.createLetters('orders', { message: 'a' })
      const ids = await api.listIds()
      const { status, headers, body } = await api.post('/requeue', { ids: [...ids, unknown] })
      expect(status).toBe(404)
      expect(body).toEqual({
        ok: false,
        error: { code: 'NOT_FOUND', message: `dead letter ${unknown} does not exist` },
      })
      expect(headers.get('x-debug-id')).not.toBe(null)
      expect(await api.listIds()).toEqual(ids)
    },
  )

  it('a requeue of an item that is not a letter is refused', async () => {
    await api.createQueue('orders')
    const { body } = await api.request('POST', '/api/v1/queues/orders/items', {
      items: [{ payload: { text: 'x' } }],
    })
    expect((await api.post('/requeue', { ids: body.ids })).status).toBe(404)
  })

  it('a requeue validates the number and form of its ids before it looks them up', async () => {
    const refused = async (ids: unknown) => {
      const { status, body } = await api.post('/requeue', { ids })
      return [status, body.error.code, body.error.meta.fields[0].name]
    }
    expect(await refused(['abc', unknownId])).toEqual([400, 'VALIDATION_ERROR', 'ids[0]'])
    expect(await refused([unknownId, ' '])).toEqual([400, 'VALIDATION_ERROR', 'ids[1]'])
    // The limit counts all given ids, including repeated and invalid ones.
    expect(await refused(Array(501).fill(unknownId))).toEqual([400, 'VALIDATION_ERROR', 'ids'])
    expect(await refused(Array(501).fill('abc'))).toEqual([400, 'VALIDATION_ERROR', 'ids'])
    expect((await api.post('/requeue', { ids: Array(500).fill(unknownId) })).status).toBe(404)
  })

  it('a requeue skips letters that cannot be sent, leaves them unchanged and sends the others', async () => {
    await api.createQueue('orders')
    await api.createQueue('gone')
    await api.createLetters('orders', { message: 'purged' }, { message: 'fine' })
    await api.createLetters('gone', { message: 'no way back' })
    const [stuck = '', fine = '', purged = ''] = await api.listIds()
    await api.post('/purge', { ids: [purged] })
    await api.request('DELETE', '/api/v1/queues/gone')
    const before = (await api.get('?topic=gone')).body.data.items
    expect((await api.post('/requeue', { ids: [purged, stuck, fine] })).body.data).toEqual({
      requeued: [fine],
      skipped: [
        { id: purged, reason: 'not_dead_letter' },
        { id: stuck, reason: 'enqueue_failed' },
      ],
    })
    expect((await api.get('?topic=gone')).body.data.items).toEqual(before)
    expect(before).toMatchObject([{ message: 'no way back', retry_count: 1 }])
  })

  it('concurrent requeues send each letter once', async () => {
    await api.createQueue('orders')
    const items = Array.from({ length: 200 }, (_, index) => ({ payload: { text: String(index) } }))
    await api.request('POST', '/api/v1/queues/orders/items', { items })
    await api.failAll('orders', 'all of them')
    const ids: string[] = []
    for (const page of [1, 2]) {
      const { data } = (await api.get(`?page_size=100&page=${page}`)).body
      ids.push(...data.items.map(({ id }: { id: string }) => id))
    }
    const answers = await Promise.all(
      [ids, ids.toReversed(), ids].map((given) => api.post('/requeue', { ids: given })),
    )
    const requeued = answers.flatMap(({ body }) => body.data.requeued)
    expect(requeued.toSorted()).toEqual(ids.toSorted())
    for (const { body } of answers) {
      const { requeued, skipped } = body.data
      expect(requeued.length + skipped.length).toBe(200)
      expect(new Set(skipped.map(({ reason }: { reason: string }) => reason)).size).toBeLessThanOrEqual(1)
    }
    expect((await api.lease('orders')).length).toBe(200)
  })

  it('a requeue is logged with its actor and counts', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    await api.post('/requeue', { ids: await api.listIds() })
    expect(api.lines.find((line) => line.event === 'dlq.requeue')).toMatchObject({
      requeued: 1,
      skipped: 0,
      actor: 'anonymous',
      duration_ms: expect.any(Number),
    })
  })
})
