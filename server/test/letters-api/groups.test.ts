import { expect, it } from 'vitest'
import { isQuick } from '../is-quick.ts'
import { type Body, createEnvelope, describeLettersServers } from './servers.ts'
import { createLetters, declareDead, lease } from './worker.ts'

const failing = (queue: string, message: string, more: object = {}) =>
  createEnvelope(queue, { error_details: { exception_class: 'Error', message }, ...more })

describeLettersServers('groups of letters', (api) => {
  it('a group has the letters of one cause, with count, statuses, times, trend and a sample', async () => {
    await api.setClock({ now: '2030-11-15T12:30:00Z' })
    const { queue, dead } = await api.createQueues()
    const died = (hour: number) => ({
      dead_lettered_at: `2030-11-15T${String(hour).padStart(2, '0')}:10:00Z`,
    })
    const ids = await api.capture(
      dead,
      failing(queue, 'order 17 not found', died(10)),
      failing(queue, 'order 18 not found', died(11)),
      failing(queue, 'order 19 not found', died(12)),
      failing(queue, 'disk full', died(12)),
    )
    await api.post('/api/v1/letters/discard', { ids: [ids[0]], reason: 'x' })
    const { body } = await api.get(`/api/v1/groups?queue=${dead}`)
    expect(body.next_cursor).toBeNull()
    expect(body.groups).toHaveLength(2)
    const [orders, disk] = body.groups
    expect(orders).toMatchObject({
      queue: dead,
      origin: queue,
      title: 'order <n> not found',
      error_class: 'Error',
      count: 3,
      statuses: { PENDING: 2, RETRYING: 0, RESOLVED: 0, DEAD: 0, DISCARDED: 1 },
      last_seen_at: '2030-11-15T12:10:00.000000Z',
      sample_id: ids[2],
      trend: { from: '2030-11-14T13:00:00.000000Z' },
    })
    expect(orders.trend.counts).toHaveLength(24)
    expect(orders.trend.counts.reduce((sum: number, count: number) => sum + count)).toBe(3)
    expect(disk).toMatchObject({ title: 'disk full', count: 1 })

    const one = await api.get(`/api/v1/groups/${orders.id}`)
    expect(one.body).toMatchObject({ id: orders.id, count: 3, sample: { id: ids[2], group_id: orders.id } })
    const letters = await api.get(`/api/v1/letters?group_id=${orders.id}`)
    expect(letters.body).toMatchObject({ total: 3 })
    expect((await api.get(`/api/v1/letters/counts?by=group_id&queue=${dead}`)).body.counts).toEqual([
      { count: 3, group_id: orders.id },
      { count: 1, group_id: disk.id },
    ])
    await api.setClock({ resume: true })
  })

  it('a letter that fails again with another cause joins its group, and a preview warns of it', async () => {
    await api.setClock({ now: '2031-03-01T12:30:00Z' })
    const { queue, dead } = await api.createQueues()
    await createLetters(api, queue, ['a'], 'old cause')
    const [letter] = (await api.get(`/api/v1/letters?queue=${dead}`)).body.letters
    await api.setClock({ now: '2031-03-04T12:30:00Z' })
    await api.post('/api/v1/letters/redrive', { ids: [letter.id] })
    await declareDead(api, queue, await lease(api, queue), 'new cause')
    const { groups } = (await api.get(`/api/v1/groups?queue=${dead}&include_empty=true`)).body
    const shown = groups.map(({ title, count, first_seen_at, last_seen_at, trend }: Body) => ({
      title,
      count,
      days: [first_seen_at, last_seen_at].map((at: string) => at.slice(0, 10)),
      now: trend.counts.at(-1),
    }))
    expect(shown).toEqual([
      { title: 'new cause', count: 1, days: ['2031-03-04', '2031-03-04'], now: 1 },
      { title: 'old cause', count: 0, days: ['2031-03-01', '2031-03-01'], now: 0 },
    ])
    const body = { action: 'redrive', filter: { queue: dead } }
    const { warnings } = (await api.post('/api/v1/campaigns/preview', body)).body
    expect(warnings.join()).toContain('(new cause) still receives letters, the last one 0 min ago')
    await api.setClock({ resume: true })
  })

  it('groups are listed in pages, the largest first', async () => {
    const { queue, dead } = await api.createQueues()
    const words = ['red', 'green', 'blue', 'white', 'black']
    for (const [index, word] of words.entries()) {
      await api.capture(
        dead,
        ...Array.from({ length: index + 1 }, () => failing(queue, `${word} is missing`)),
      )
    }
    const titles: string[] = []
    let cursor = ''
    do {
      const { body } = await api.get(`/api/v1/groups?queue=${dead}&limit=2${cursor}`)
      titles.push(...body.groups.map(({ title }: Body) => title))
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    } while (cursor !== '')
    expect(titles).toEqual(words.toReversed().map((word) => `${word} is missing`))
    const some = await api.get(`/api/v1/groups?queue=${dead}&status=DISCARDED`)
    expect(some.body.groups).toEqual([])
    const all = await api.get(`/api/v1/groups?queue=${dead}&status=DISCARDED&include_empty=true`)
    expect(all.body.groups).toHaveLength(5)
  })

  it('above 5,000 groups new letters are still counted by error class, and their slug is `other`', {
    timeout: 120_000,
    skip: isQuick,
  }, async () => {
    const { queue, dead } = await api.createQueues()
    const word = (number: number) => [...String(number)].map((digit) => 'abcdefghij'[Number(digit)]).join('')
    const all = 5_020
    const died = { dead_lettered_at: '2020-01-01T00:00:00Z' }
    for (let from = 0; from < all; from += 1_000) {
      const some = Array.from({ length: Math.min(1_000, all - from) }, (_, index) =>
        failing(queue, `${word(from + index)}: rejected`, died),
      )
      await api.capture(dead, ...some)
    }
    const list = async (query: string) => (await api.get(`/api/v1/letters?queue=${dead}&${query}`)).body
    expect(await list('error_class=Error&limit=1')).toMatchObject({ total: all })
    const [last] = (await list(`message=${word(all - 1)}&limit=1`)).letters
    expect(last.failure).toMatchObject({ slug: 'other', error_class: 'Error' })
    expect((await api.get(`/api/v1/letters/${last.id}`)).body.failures[0].slug).toBe('other')
    expect(await list('slug=other&limit=100')).toMatchObject({ total: 20 })
    expect(await list(`slug=${word(all - 1)}`)).toMatchObject({ total: 0, letters: [] })
    const filter = { queue: dead, error_class: 'Error' }
    const { body } = await api.post('/api/v1/campaigns/preview', { action: 'discard', filter })
    expect(body).toMatchObject({ count: all, is_exact: true })
    const shown = (await api.get(`/api/v1/dlq?reason=${word(all - 1)}`)).body.data.items
    expect(shown).toMatchObject([{ id: last.id, reason: 'other' }])
    const purge = { older_than: '2020-01-02T00:00:00Z', reason: 'other', match: 'code' }
    expect((await api.post('/api/v1/dlq/purge', purge)).body.data).toMatchObject({ purged: 20, matched: 20 })
    expect(await list('slug=other&status=PENDING')).toMatchObject({ total: 0 })
  })

  it('above 10,000 error classes counts by error class are marked as not exact', {
    timeout: 240_000,
    skip: isQuick,
  }, async () => {
    const { queue, dead } = await api.createQueues()
    const ofClass = (exception_class: string) =>
      createEnvelope(queue, { error_code: 'r', error_details: { exception_class, message: 'm' } })
    for (let from = 0; from < 10_000; from += 1_000)
      await api.capture(dead, ...Array.from({ length: 1_000 }, (_, index) => ofClass(`Class${from + index}`)))
    const counts = async (query: string) =>
      (await api.get(`/api/v1/letters/counts?queue=${dead}&${query}`)).body
    expect((await counts('by=error_class')).is_exact).toBeUndefined()
    await api.capture(dead, ofClass('One'), ofClass('Other'))
    const byClass = await counts('by=error_class')
    expect(byClass).toMatchObject({ total: 10_002, is_exact: false })
    expect(byClass.counts).toContainEqual({ error_class: '(others)', count: 2 })
    expect(await counts('error_class=One')).toMatchObject({ total: 0, is_exact: false })
    // The slug excludes the letters that are counted as (others).
    const named = await counts('by=error_class&slug=m')
    expect([named.total, named.is_exact]).toEqual([5_000, undefined])
    expect(await counts('by=error_code')).toEqual({
      counts: [{ error_code: 'r', count: 10_002 }],
      total: 10_002,
    })
  })

  it('an unknown group is not found, and invalid queries of groups are refused', async () => {
    expect(await api.get('/api/v1/groups/999999')).toMatchObject({
      status: 404,
      body: { error: { code: 'GROUP_NOT_FOUND' } },
    })
    expect((await api.get('/api/v1/groups/first')).status).toBe(400)
    expect((await api.get('/api/v1/groups?message=a')).status).toBe(400)
    expect((await api.get('/api/v1/groups?cursor=a')).status).toBe(400)
  })
})
