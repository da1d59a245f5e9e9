import { expect, it } from 'vitest'
import { describeDesks } from './desk.ts'

describeDesks('the list of dead letters', (desk) => {
  it('shows what waits for somebody, in the envelope', async () => {
    await desk.queue('orders')
    const diedAt = await desk.now()
    await desk.die('orders', { kind: 'download', message: 'network timeout' })
    const { status, headers, body } = await desk.get('', { 'x-request-id': 'mine' })
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
            created_at: diedAt,
            updated_at: diedAt,
            retry_count: 0,
          },
        ],
        page: 1,
        page_size: 25,
        total: 1,
      },
      error: null,
    })
  })

  it('is empty where nothing died', async () => {
    expect((await desk.get('')).body.data).toEqual({ items: [], page: 1, page_size: 25, total: 0 })
  })

  it('derives the reason from the head of the message', async () => {
    await desk.queue('orders')
    const vectors = {
      'network timeout': 'network',
      'HTTP 503: upstream': 'http_503',
      'Soulseek error: peer': 'soulseek_error',
      '[Errno 111] x': 'errno',
      ':x': 'unknown',
      '!!!': 'unknown',
      時間切れ: 'unknown',
    }
    await desk.die('orders', ...Object.keys(vectors).map((message) => ({ message })))
    const { items } = (await desk.get('?order_dir=asc')).body.data
    const seen = items.map(({ message, reason }: Record<string, string>) => [message, reason])
    expect(Object.fromEntries(seen)).toEqual(vectors)
    expect(items[0].entity).toBe('item')
  })

  it('says when an item died, not when it was made', async () => {
    await desk.queue('orders')
    await desk.ask('POST', '/api/v1/queues/orders/items', { items: [{ text: 'old' }] })
    await desk.advance('20h')
    const diedAt = await desk.now()
    await desk.failAll('orders', 'late')
    expect((await desk.get('')).body.data.items[0]).toMatchObject({ message: 'late', created_at: diedAt })
  })

  it('comes in pages by number, newest first or oldest first', async () => {
    await desk.queue('orders')
    const messages = Array.from({ length: 7 }, (_, index) => `m${index}`)
    await desk.die('orders', ...messages.map((message) => ({ message })))
    const page = async (query: string): Promise<string[]> => {
      const { body } = await desk.get(query)
      expect(body.data.total).toBe(7)
      return body.data.items.map(({ message }: { message: string }) => message)
    }
    expect(await page('?page_size=3')).toEqual(['m6', 'm5', 'm4'])
    expect(await page('?page_size=3&page=2')).toEqual(['m3', 'm2', 'm1'])
    expect(await page('?page_size=3&page=3')).toEqual(['m0'])
    expect(await page('?page_size=3&page=4')).toEqual([])
    expect(await page('?page_size=3&page=9007199254740991')).toEqual([])
    expect(await page('?page_size=3&order_dir=asc')).toEqual(['m0', 'm1', 'm2'])
    expect((await desk.get('?page_size=3&page=2')).body.data).toMatchObject({ page: 2, page_size: 3 })
  })

  it('orders ties by id in the same direction, so that pages neither repeat nor skip', async () => {
    await desk.queue('orders')
    const items = Array.from({ length: 9 }, (_, index) => ({ text: String(index) }))
    await desk.ask('POST', '/api/v1/queues/orders/items', { items })
    await desk.failAll('orders', 'all at once')
    for (const order of ['order_by=created_at', 'order_by=updated_at']) {
      const seen: string[] = []
      for (const page of [1, 2, 3, 4, 5]) {
        const { body } = await desk.get(`?${order}&page_size=2&page=${page}`)
        seen.push(...body.data.items.map(({ id }: { id: string }) => id))
      }
      expect(seen).toEqual(seen.toSorted().reverse())
      expect(new Set(seen).size).toBe(9)
    }
  })

  it('orders by the last change when asked to', async () => {
    await desk.queue('orders')
    await desk.die('orders', { message: 'first' }, { message: 'second' })
    const [, first] = await desk.ids()
    await desk.post('/requeue', { ids: [first] })
    await desk.failAll('orders', 'first again')
    const messages = async (query: string) =>
      (await desk.get(query)).body.data.items.map(({ message }: { message: string }) => message)
    expect(await messages('?order_by=updated_at')).toEqual(['first again', 'second'])
    expect(await messages('?order_by=created_at')).toEqual(['second', 'first again'])
  })

  it('is bounded by times, both included', async () => {
    await desk.queue('orders')
    const times: string[] = []
    for (const message of ['a', 'b', 'c']) {
      times.push(await desk.now())
      await desk.die('orders', { message })
    }
    const found = async (query: string) => {
      const { data } = (await desk.get(query)).body
      expect(data.total_is_exact).toBeUndefined()
      expect(data.total).toBe(data.items.length)
      return data.items.map(({ message }: { message: string }) => message).toSorted()
    }
    const [a = '', b = '', c = ''] = times
    expect(await found(`?from=${b}`)).toEqual(['b', 'c'])
    expect(await found(`?to=${b}`)).toEqual(['a', 'b'])
    expect(await found(`?from=${b}&to=${b}`)).toEqual(['b'])
    expect(await found(`?from=${c}&to=${a}`)).toEqual([])
    // Without a zone it is UTC; with one it is converted, also when the plus sign was not encoded.
    expect(await found(`?from=${b.slice(0, -1)}`)).toEqual(['b', 'c'])
    const anHourAhead = `${new Date(Date.parse(b) + 3_600_000).toISOString().slice(0, 19)}`
    expect(await found(`?to=${anHourAhead}%2B01:00`)).toEqual(['a', 'b'])
    expect(await found(`?to=${anHourAhead}+01:00`)).toEqual(['a', 'b'])
    // The whole day.
    expect(await found(`?to=${b.slice(0, 10)}`)).toEqual(['a', 'b', 'c'])
  })

  it('finds a text anywhere in the message, whatever the case, and takes no letter for a wildcard', async () => {
    await desk.queue('orders')
    const messages = ['network timeout', 'auth: Network token', '100% wrong', 'a_b', 'axb']
    await desk.die('orders', ...messages.map((message) => ({ message })))
    const found = async (reason: string) => {
      const { data } = (await desk.get(`?reason=${encodeURIComponent(reason)}`)).body
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

  it('shows only what came from a topic when asked to, also one that is called like a path', async () => {
    await desk.queue('stats')
    await desk.queue('orders')
    await desk.die('stats', { message: 's' })
    await desk.die('orders', { message: 'o' })
    const { data } = (await desk.get('?topic=stats')).body
    expect(data).toMatchObject({ total: 1, items: [{ message: 's' }] })
  })

  it('leaves out what is on its way, resolved or given up, and shows what is DEAD', async () => {
    await desk.queue('orders', { redrive: { redrives_max: 1 } })
    await desk.die('orders', { message: 'a' }, { message: 'b' }, { message: 'c' }, { message: 'd' })
    const [d, c, b] = await desk.ids()
    await desk.post('/purge', { ids: [d] })
    await desk.post('/requeue', { ids: [c] })
    await desk.completeAll('orders')
    await desk.post('/requeue', { ids: [b] })
    await desk.failAll('orders', 'b again')
    await desk.post('/requeue', { ids: [(await desk.ids()).at(-1)] })
    const { data } = (await desk.get('')).body
    expect(data).toMatchObject({ total: 1, items: [{ id: b, message: 'b again', retry_count: 1 }] })
  })

  it('is said in the log', async () => {
    await desk.get('?page=2&page_size=7&reason=x&from=2025-01-01')
    expect(desk.lines.find((line) => line.event === 'dlq.list')).toMatchObject({
      page: 2,
      page_size: 7,
      reason: 'x',
      from: '2025-01-01',
      actor: 'anonymous',
      duration_ms: expect.any(Number),
    })
  })
})

describeDesks(
  'the list of dead letters with other bounds',
  (desk) => {
    it('has pages as large as the settings say, and a default above the bound is the bound', async () => {
      expect((await desk.get('')).body.data.page_size).toBe(3)
      expect((await desk.get('?page_size=4')).body.error.meta.fields).toEqual([
        { name: 'page_size', message: 'must be <= 3' },
      ])
    })
  },
  { 'dlq.page_size_default': 50, 'dlq.page_size_max': 3 },
)
