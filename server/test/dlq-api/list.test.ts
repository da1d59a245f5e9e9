import { expect, it } from 'vitest'
import { describeDlqServers } from './servers.ts'

describeDlqServers('the list of dead letters', (api) => {
  it('the list shows open letters with the fields of the contract', async () => {
    await api.createQueue('orders')
    const deadLetteredAt = await api.now()
    await api.createLetters('orders', { kind: 'download', message: 'network timeout' })
    const { status, headers, body } = await api.get('', { 'x-request-id': 'mine' })
    expect(status).toBe(200)
    expect(headers.get('x-request-id')).toBe('mine')
    expect(body).toEqual({
      ok: true,
      data: {
        items: [
          {
            id: expect.stringMatching(/^[0-9A-Za-z]{27}$/),
            entity: 'download',
            reason: 'network',
            message: 'network timeout',
            created_at: deadLetteredAt,
            updated_at: deadLetteredAt,
            retry_count: 1,
          },
        ],
        page: 1,
        page_size: 25,
        total: 1,
      },
      error: null,
    })
  })

  it('the list without dead letters is empty', async () => {
    expect((await api.get('')).body.data).toEqual({ items: [], page: 1, page_size: 25, total: 0 })
  })

  it('the reason of a letter is derived from the head of its message', async () => {
    await api.createQueue('orders')
    const vectors = {
      'network timeout': 'network',
      'HTTP 503: upstream': 'http_503',
      'Soulseek error: peer': 'soulseek_error',
      '[Errno 111] x': 'errno',
      ':x': 'unknown',
      '!!!': 'unknown',
      時間切れ: '時間切れ',
    }
    await api.createLetters('orders', ...Object.keys(vectors).map((message) => ({ message })))
    const { items } = (await api.get('?order_dir=asc')).body.data
    const seen = items.map(({ message, reason }: Record<string, string>) => [message, reason])
    expect(Object.fromEntries(seen)).toEqual(vectors)
    expect(items[0].entity).toBe('item')
  })

  it('created_at is the time of death, not the creation of the item', async () => {
    await api.createQueue('orders')
    await api.request('POST', '/api/v1/queues/orders/items', { items: [{ payload: { text: 'old' } }] })
    await api.advance('20h')
    const deadLetteredAt = await api.now()
    await api.failAll('orders', 'late')
    expect((await api.get('')).body.data.items[0]).toMatchObject({
      message: 'late',
      created_at: deadLetteredAt,
    })
  })

  it('the list has numbered pages in both directions', async () => {
    // Each test that turns pages has a topic of its own: cursors of a slow list are kept for a minute.
    await api.createQueue('pages')
    const messages = Array.from({ length: 7 }, (_, index) => `m${index}`)
    await api.createLetters('pages', ...messages.map((message) => ({ message })))
    const page = async (query: string): Promise<string[]> => {
      const { body } = await api.get(`?topic=pages&${query}`)
      expect(body.data.total).toBe(7)
      return body.data.items.map(({ message }: { message: string }) => message)
    }
    expect(await page('page_size=3')).toEqual(['m6', 'm5', 'm4'])
    expect(await page('page_size=3&page=2')).toEqual(['m3', 'm2', 'm1'])
    expect(await page('page_size=3&page=3')).toEqual(['m0'])
    expect(await page('page_size=3&page=4')).toEqual([])
    expect(await page('page_size=3&page=9007199254740991')).toEqual([])
    expect(await page('page_size=3&order_dir=asc')).toEqual(['m0', 'm1', 'm2'])
    expect((await api.get('?topic=pages&page_size=3&page=2')).body.data).toMatchObject({
      page: 2,
      page_size: 3,
    })
  })

  it('letters with the same time are ordered by id, so that pages neither repeat nor skip letters', async () => {
    await api.createQueue('ties')
    const items = Array.from({ length: 9 }, (_, index) => ({ payload: { text: String(index) } }))
    await api.request('POST', '/api/v1/queues/ties/items', { items })
    await api.failAll('ties', 'all at once')
    for (const order of ['order_by=created_at', 'order_by=updated_at']) {
      const seen: string[] = []
      for (const page of [1, 2, 3, 4, 5]) {
        const { body } = await api.get(`?topic=ties&${order}&page_size=2&page=${page}`)
        seen.push(...body.data.items.map(({ id }: { id: string }) => id))
      }
      expect(seen).toEqual(seen.toSorted().reverse())
      expect(new Set(seen).size).toBe(9)
    }
  })

  it('order_by=updated_at sorts by the last change', async () => {
    await api.createQueue('orders')
    await api.createLetters('orders', { message: 'first' }, { message: 'second' })
    const [, first] = await api.listIds()
    await api.post('/requeue', { ids: [first] })
    await api.failAll('orders', 'first again')
    const messages = async (query: string) =>
      (await api.get(query)).body.data.items.map(({ message }: { message: string }) => message)
    expect(await messages('?order_by=updated_at')).toEqual(['first again', 'second'])
    expect(await messages('?order_by=created_at')).toEqual(['second', 'first again'])
  })

  it('from and to select by time of death and include their own instants', async () => {
    await api.createQueue('orders')
    const times: string[] = []
    for (const message of ['a', 'b', 'c']) {
      times.push(await api.now())
      await api.createLetters('orders', { message })
    }
    const found = async (query: string) => {
      const { data } = (await api.get(query)).body
      expect(data.total_is_exact).toBeUndefined()
      expect(data.total).toBe(data.items.length)
      return data.items.map(({ message }: { message: string }) => message).toSorted()
    }
    const [a = '', b = '', c = ''] = times
    expect(await found(`?from=${b}`)).toEqual(['b', 'c'])
    expect(await found(`?to=${b}`)).toEqual(['a', 'b'])
    expect(await found(`?from=${b}&to=${b}`)).toEqual(['b'])
    expect(await found(`?from=${c}&to=${a}`)).toEqual([])
    // A time without an offset is UTC. An offset is converted, even if its plus sign was not encoded.
    expect(await found(`?from=${b.slice(0, -1)}`)).toEqual(['b', 'c'])
    const anHourAhead = `${new Date(Date.parse(b) + 3_600_000).toISOString().slice(0, 19)}`
    expect(await found(`?to=${anHourAhead}%2B01:00`)).toEqual(['a', 'b'])
    expect(await found(`?to=${anHourAhead}+01:00`)).toEqual(['a', 'b'])
    // A date includes its whole day.
    expect(await found(`?to=${b.slice(0, 10)}`)).toEqual(['a', 'b', 'c'])
  })

  it('reason finds a text anywhere in the message, in any case and without wildcards', async () => {
    await api.createQueue('orders')
    const messages = ['network timeout', 'auth: Network token', '100% wrong', 'a_b', 'axb']
    await api.createLetters('orders', ...messages.map((message) => ({ message })))
    const found = async (reason: string) => {
      const { data } = (await api.get(`?reason=${encodeURIComponent(reason)}`)).body
      expect(data.total).toBe(data.items.length)
      return data.items.map(({ message }: { message: string }) => message).toSorted()
    }
    expect(await found('NETWORK')).toEqual(['auth: Network token', 'network timeout'])
    expect(await found('  network  ')).toEqual(['auth: Network token', 'network timeout'])
    expect(await found('%')).toEqual(['100% wrong'])
    expect(await found('a_b')).toEqual(['a_b'])
    expect(await found('nothing like it')).toEqual([])
    expect((await found('  ')).length).toBe(5)
  })

  it('topic selects letters by origin, even if the topic has the name of a route', async () => {
    await api.createQueue('stats')
    await api.createQueue('orders')
    await api.createLetters('stats', { message: 's' })
    await api.createLetters('orders', { message: 'o' })
    const { data } = (await api.get('?topic=stats')).body
    expect(data).toMatchObject({ total: 1, items: [{ message: 's' }] })
  })

  it('the list shows DEAD letters, but none that are RETRYING, RESOLVED or discarded', async () => {
    await api.createQueue('orders', { redrive: { redrives_max: 1 } })
    await api.createLetters('orders', { message: 'a' }, { message: 'b' }, { message: 'c' }, { message: 'd' })
    const [d, c, b] = await api.listIds()
    await api.post('/purge', { ids: [d] })
    await api.post('/requeue', { ids: [c] })
    await api.completeAll('orders')
    await api.post('/requeue', { ids: [b] })
    await api.failAll('orders', 'b again')
    await api.post('/requeue', { ids: [(await api.listIds()).at(-1)] })
    const { data } = (await api.get('')).body
    expect(data).toMatchObject({ total: 1, items: [{ id: b, message: 'b again', retry_count: 2 }] })
  })

  it('a list call is logged with its parameters', async () => {
    await api.get('?page=2&page_size=7&reason=x&from=2025-01-01')
    expect(api.lines.find((line) => line.event === 'dlq.list')).toMatchObject({
      page: 2,
      page_size: 7,
      reason: 'x',
      from: '2025-01-01',
      actor: 'anonymous',
      duration_ms: expect.any(Number),
    })
  })
})

describeDlqServers(
  'the list of dead letters with other limits',
  (api) => {
    it('the settings limit the page size, also the default', async () => {
      expect((await api.get('')).body.data.page_size).toBe(3)
      expect((await api.get('?page_size=4')).body.error.meta.fields).toEqual([
        { name: 'page_size', message: 'must be <= 3' },
      ])
    })
  },
  { 'dlq.page_size_default': 50, 'dlq.page_size_max': 3 },
)
