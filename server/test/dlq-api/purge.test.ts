import { expect, it } from 'vitest'
import { ksuidToUuid } from '../../src/core/ksuid.ts'
import { describeDesks, unknownId } from './desk.ts'

describeDesks('a purge', (desk) => {
  it('gives letters up by id, and passes over what is not there or not open', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' }, { message: 'b' }, { message: 'c' })
    const [c = '', b = '', a = ''] = await desk.ids()
    await desk.post('/requeue', { ids: [c] })
    const ids = [a, ksuidToUuid(a), b, c, unknownId, '41']
    const { status, body } = await desk.post('/purge', { ids, reason: 'ignored here' })
    expect([status, body]).toEqual([200, { ok: true, data: { purged: 2 }, error: null }])
    expect((await desk.post('/purge', { ids })).body.data).toEqual({ purged: 0 })
    expect(await desk.ids()).toEqual([])
    expect((await desk.get(`/messages/${c}`)).body.status).toBe('RETRYING')
  })

  it('takes the given time as included, and may lie ahead', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const older_than = await desk.now()
    await desk.die('orders', { message: 'b' }, { message: 'c' })
    expect((await desk.post('/purge', { older_than })).body.data).toEqual({ purged: 2 })
    expect((await desk.post('/purge', { older_than: '2999-01-01' })).body.data).toEqual({ purged: 1 })
    expect((await desk.post('/purge', { older_than: '2999-01-01' })).body.data).toEqual({ purged: 0 })
  })

  it('goes by the time of death: what is old but died a moment ago stays', async () => {
    await desk.queue('orders')
    await desk.ask('POST', '/api/v1/queues/orders/items', { items: [{ text: 'old' }] })
    await desk.advance('10h')
    const older_than = await desk.now()
    await desk.advance('1s')
    await desk.failAll('orders', 'just now')
    expect((await desk.post('/purge', { older_than })).body.data).toEqual({ purged: 0 })
  })

  it('by reason takes exactly those with that reason', async () => {
    await desk.queue('orders')
    await desk.die(
      'orders',
      { message: 'network timeout' },
      { message: 'auth: network token invalid' },
      { message: 'network_x: down' },
      { message: 'HTTP 503: upstream' },
    )
    const purge = async (reason: string) =>
      (await desk.post('/purge', { older_than: '2999-01-01', reason })).body.data.purged
    expect(await purge('net')).toBe(0)
    expect(await purge('net%')).toBe(0)
    expect(await purge(' Network ')).toBe(1)
    expect(await purge('http_503')).toBe(1)
    expect((await desk.get('/stats')).body.data.by_reason).toEqual({ auth: 1, network_x: 1 })
  })

  it('leaves tombstones: nothing brings them back, and the archive of deeds has them', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const [a = ''] = await desk.ids()
    await desk.post('/purge', { ids: [a] })
    expect((await desk.post('/requeue', { ids: [a] })).body.data.skipped).toEqual([
      { id: a, reason: 'not_dead_letter' },
    ])
    expect((await desk.get(`/messages/${a}`)).status).toBe(404)
    const { body } = await desk.ask('GET', `/api/v1/letters/${a}`)
    expect(JSON.stringify(body)).toContain('letter.discard')
  })

  it('is said in the log, with who did it', async () => {
    await desk.post('/purge', { older_than: '2025-01-01', reason: 'network' })
    expect(desk.lines.find((line) => line.event === 'dlq.purge')).toMatchObject({
      purged: 0,
      reason: 'network',
      older_than: '2025-01-01',
      actor: 'anonymous',
      duration_ms: expect.any(Number),
    })
  })

  it('is said in the log without a reason where none was looked for', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'a' })
    const [a = ''] = await desk.ids()
    const before = desk.lines.length
    await desk.post('/purge', { older_than: '2025-01-01' })
    await desk.post('/purge', { ids: [a], reason: 'ignored' })
    const purges = desk.lines.slice(before).filter((line) => line.event === 'dlq.purge')
    expect(purges).toMatchObject([
      { purged: 0, reason: null, older_than: '2025-01-01' },
      { purged: 1, reason: null, older_than: null },
    ])
  })
})

describeDesks(
  'a purge of more than it may',
  (desk) => {
    it('takes the oldest, and says that there are more', async () => {
      await desk.queue('orders')
      await desk.die('orders', ...['a', 'b', 'c', 'd', 'e'].map((message) => ({ message })))
      const purge = async () => (await desk.post('/purge', { older_than: '2999-01-01' })).body.data
      expect(await purge()).toEqual({ purged: 2, has_more: true })
      const left = (await desk.get('?order_dir=asc')).body.data.items
      expect(left.map(({ message }: { message: string }) => message)).toEqual(['c', 'd', 'e'])
      expect(await purge()).toEqual({ purged: 2, has_more: true })
      expect(await purge()).toEqual({ purged: 1 })
    })

    it('by ids is refused whole, repeats included', async () => {
      await desk.queue('orders')
      await desk.die('orders', { message: 'a' })
      const [a = ''] = await desk.ids()
      const { status, body } = await desk.post('/purge', { ids: [a, a, a] })
      expect([status, body.error.meta.fields]).toEqual([
        400,
        [{ name: 'ids', message: 'has 3 entries; at most 2 are allowed' }],
      ])
      expect(await desk.ids()).toEqual([a])
    })
  },
  { 'dlq.purge_limit': 2 },
)

describeDesks('the figures', (desk) => {
  it('are zero where nothing died', async () => {
    expect((await desk.get('/stats')).body).toEqual({
      ok: true,
      data: { total: 0, by_reason: {}, last_24h: 0 },
      error: null,
    })
  })

  it('count what waits for somebody by reason, and what died in the last day', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'network a' }, { message: 'auth: b' })
    await desk.advance('24h')
    await desk.die('orders', { message: 'network c' }, {}, { message: 'soon resolved' })
    const [resolved = ''] = await desk.ids()
    await desk.post('/requeue', { ids: [resolved] })
    await desk.completeAll('orders')
    const { data } = (await desk.get('/stats')).body
    expect(data.total).toBe(4)
    expect(data.last_24h).toBe(2)
    expect(data.by_reason).toMatchObject({ network: 2, auth: 1 })
    const counts = Object.values(data.by_reason as Record<string, number>)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(4)
    expect(desk.lines.find((line) => line.event === 'dlq.stats')).toMatchObject({
      total: 4,
      last_24h: 2,
      distinct_reasons: counts.length,
      actor: 'anonymous',
      duration_ms: expect.any(Number),
    })
  })
})
