import { expect, it } from 'vitest'
import { convertToUuid } from '../../src/core/ids/ksuid.ts'
import { describeDlqServers, unknownId } from './servers.ts'

describeDlqServers('a purge', (api) => {
  it('a purge by ids discards open letters and ignores all other ids', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' }, { message: 'b' }, { message: 'c' })
    const [c = '', b = '', a = ''] = await api.listIds()
    await api.post('/requeue', { ids: [c] })
    const ids = [a, convertToUuid(a), b, c, unknownId, '41']
    const { status, body } = await api.post('/purge', { ids })
    expect([status, body]).toEqual([
      200,
      { ok: true, data: { purged: 2, matched: 2, dry_run: false }, error: null },
    ])
    expect((await api.post('/purge', { ids })).body.data).toMatchObject({ purged: 0 })
    expect(await api.listIds()).toEqual([])
    expect((await api.get(`/messages/${c}`)).body.status).toBe('RETRYING')
  })

  it('older_than includes its own instant, and an instant in the future needs force', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const older_than = await api.now()
    await api.createLetters('orders', { message: 'b' }, { message: 'c' })
    expect((await api.post('/purge', { older_than })).body.data).toMatchObject({ purged: 2 })
    const refused = await api.post('/purge', { older_than: '2999-01-01' })
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      expect.stringContaining('older_than is 2999-01-01, which is in the future; it is now'),
    ])
    expect(await api.listIds()).toHaveLength(1)
    const forced = { older_than: '2999-01-01', force: true }
    expect((await api.post('/purge', forced)).body.data).toMatchObject({ purged: 1 })
    expect((await api.post('/purge', forced)).body.data).toMatchObject({ purged: 0 })
  })

  it('older_than compares the time of death, not the time at which the item was created', async () => {
    await api.createQueue('orders')
    await api.request('POST', '/api/v1/queues/orders/items', { items: [{ payload: { text: 'old' } }] })
    await api.advance('10h')
    const older_than = await api.now()
    await api.advance('1s')
    await api.failAll('orders', 'just now')
    expect((await api.post('/purge', { older_than })).body.data).toMatchObject({ purged: 0 })
  })

  const reasons = [
    { message: 'network timeout' },
    { message: 'auth: network token invalid' },
    { message: 'network_x: down' },
    { message: 'HTTP 503: upstream' },
  ]
  const countReasons = async () => (await api.get('/stats')).body.data.by_reason

  it('a purge by reason discards the letters that the list with this reason shows', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', ...reasons)
    const purge = async (reason: string) => {
      const { total } = (await api.get(`?reason=${encodeURIComponent(reason)}`)).body.data
      const { purged } = (await api.post('/purge', { older_than: await api.now(), reason })).body.data
      return [total, purged]
    }
    expect(await purge('net%')).toEqual([0, 0])
    expect(await purge(' Network T')).toEqual([2, 2])
    expect(await countReasons()).toEqual({ network_x: 1, http_503: 1 })
    expect(await purge('UPSTREAM')).toEqual([1, 1])
    expect(await countReasons()).toEqual({ network_x: 1 })
  })

  it('a purge with match "code" compares the reason exactly', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', ...reasons)
    const purge = async (reason: string, match: string) =>
      (await api.post('/purge', { older_than: await api.now(), reason, match })).body.data.purged
    expect(await purge('net', 'code')).toBe(0)
    expect(await purge('net%', 'code')).toBe(0)
    expect(await purge('Network', 'code')).toBe(0)
    expect(await purge('network', 'code')).toBe(1)
    expect(await purge('http_503', 'code')).toBe(1)
    expect(await countReasons()).toEqual({ auth: 1, network_x: 1 })
    expect(await purge('network', 'message')).toBe(2)
  })

  it('a dry run counts the letters that match and discards none', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', ...reasons)
    const ids = await api.listIds()
    await api.post('/requeue', { ids: [ids[0]] })
    const older_than = await api.now()
    const dryRun = async (selection: object) =>
      (await api.post('/purge', { ...selection, dry_run: true })).body.data
    expect(await dryRun({ older_than, reason: 'network' })).toEqual({ purged: 0, matched: 3, dry_run: true })
    expect(await dryRun({ ids: [...ids, unknownId] })).toEqual({ purged: 0, matched: 3, dry_run: true })
    expect(await api.listIds()).toHaveLength(3)
  })

  it('a purged letter cannot be requeued, and the audit log has its discard', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const [a = ''] = await api.listIds()
    await api.post('/purge', { ids: [a] })
    expect((await api.post('/requeue', { ids: [a] })).body.data.skipped).toEqual([
      { id: a, reason: 'not_dead_letter' },
    ])
    expect((await api.get(`/messages/${a}`)).status).toBe(404)
    const { body } = await api.request('GET', `/api/v1/letters/${a}`)
    expect(JSON.stringify(body)).toContain('letter.discard')
  })

  it('a purge is logged with its actor and counts', async () => {
    await api.post('/purge', { older_than: '2025-01-01', reason: 'network' })
    expect(api.lines.find((line) => line.event === 'dlq.purge')).toMatchObject({
      purged: 0,
      reason: 'network',
      older_than: '2025-01-01',
      actor: 'anonymous',
      duration_ms: expect.any(Number),
    })
  })

  it('a purge by ids or without a reason is logged with the reason null', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'a' })
    const [a = ''] = await api.listIds()
    const before = api.lines.length
    await api.post('/purge', { older_than: '2025-01-01' })
    await api.post('/purge', { ids: [a] })
    const purges = api.lines.slice(before).filter((line) => line.event === 'dlq.purge')
    expect(purges).toMatchObject([
      { purged: 0, reason: null, older_than: '2025-01-01' },
      { purged: 1, reason: null, older_than: null },
    ])
  })
})

describeDlqServers(
  'a purge above its limit',
  (api) => {
    it('a purge by age above the limit discards the oldest letters and answers has_more', async () => {
      await api.createQueue('orders')
      await api.createLetters('orders', ...['a', 'b', 'c', 'd', 'e'].map((message) => ({ message })))
      const purge = async () =>
        (await api.post('/purge', { older_than: '2999-01-01', force: true })).body.data
      expect(await purge()).toEqual({ purged: 2, matched: 5, dry_run: false, has_more: true })
      const left = (await api.get('?order_dir=asc')).body.data.items
      expect(left.map(({ message }: { message: string }) => message)).toEqual(['c', 'd', 'e'])
      expect(await purge()).toEqual({ purged: 2, matched: 3, dry_run: false, has_more: true })
      expect(await purge()).toMatchObject({ purged: 1 })
    })

    it('a purge with more ids than the limit is refused, even if they repeat', async () => {
      await api.createQueue('orders')
      await api.createLetters('orders', { message: 'a' })
      const [a = ''] = await api.listIds()
      const { status, body } = await api.post('/purge', { ids: [a, a, a] })
      expect([status, body.error.meta.fields]).toEqual([
        400,
        [{ name: 'ids', message: 'has 3 entries; at most 2 are allowed' }],
      ])
      expect(await api.listIds()).toEqual([a])
    })
  },
  { 'dlq.purge_limit': 2 },
)

describeDlqServers('dlq stats', (api) => {
  it('stats are zero without dead letters', async () => {
    expect((await api.get('/stats')).body).toEqual({
      ok: true,
      data: { total: 0, by_reason: {}, last_24h: 0 },
      error: null,
    })
  })

  it('stats count open letters by reason, and letters that died in the last 24 hours', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'network a' }, { message: 'auth: b' })
    await api.advance('24h')
    await api.createLetters('orders', { message: 'network c' }, {}, { message: 'soon resolved' })
    const [resolved = ''] = await api.listIds()
    await api.post('/requeue', { ids: [resolved] })
    await api.completeAll('orders')
    const { data } = (await api.get('/stats')).body
    expect(data.total).toBe(4)
    expect(data.last_24h).toBe(2)
    expect(data.by_reason).toMatchObject({ network: 2, auth: 1 })
    const counts = Object.values(data.by_reason as Record<string, number>)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(4)
    expect(api.lines.find((line) => line.event === 'dlq.stats')).toMatchObject({
      total: 4,
      last_24h: 2,
      distinct_reasons: counts.length,
      actor: 'anonymous',
      duration_ms: expect.any(Number),
    })
  })
})
