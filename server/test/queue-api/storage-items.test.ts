import { expect, it } from 'vitest'
import { describeQueueServers, noonText, readTexts } from './servers.ts'

type Item = Readonly<{ id: string; payload?: string }>

describeQueueServers('storage', (api) => {
  const list = async (queue: string, more: Record<string, string | number> = {}): Promise<Item[]> =>
    (await api.call('storage/items.list', { queue_name: queue, ...more })).items ?? []

  it('a stored item is listed with all its times, unset times as the zero time', async () => {
    await api.setClock({ now: '2030-11-15T12:00:00.000006Z' })
    const queue = await api.createQueue()
    await api.produce(queue, 'one')
    const [item] = await list(queue)
    expect(item).toEqual({
      id: expect.stringMatching(/^[0-9A-Za-z]{27}$/),
      lease_deadline: '0001-01-01T00:00:00Z',
      expire_deadline: '2030-11-16T12:00:00.000006Z',
      created_at: '2030-11-15T12:00:00.000006Z',
      payload: 'b25l',
    })
  })

  it('stored items are listed by id, starting at the pivot', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, '1', '2', '3', '4')
    const all = await list(queue)
    const [first, second, third] = all as [Item, Item, Item]
    expect(readTexts(await list(queue, { limit: 2 }))).toEqual(['1', '2'])
    expect(readTexts(await list(queue, { pivot: second.id, limit: 2 }))).toEqual(['2', '3'])
    await api.call('storage/items.delete', { queue_name: queue, ids: [second.id, first.id, first.id] })
    expect(readTexts(await list(queue, { pivot: second.id }))).toEqual(['3', '4'])
    expect(await list(queue, { pivot: 'aWgEPTl1tmebfsQzFP4bxwgy80V' })).toEqual([])
    expect(third.id > second.id).toBe(true)
  })

  it('imported items keep their fields and get new ids', async () => {
    await api.setClock({ now: noonText })
    const queue = await api.createQueue()
    const given = [
      {
        id: '0ujtsYcgvSTl8PAuAdqWYSMnLOv',
        source_id: 'elsewhere-1',
        is_leased: true,
        lease_deadline: '2030-11-15T12:10:00.000001Z',
        expire_deadline: '2031-01-01T00:00:00Z',
        created_at: '2020-01-01T00:00:00Z',
        attempts: 2,
        max_attempts: 5,
        reference: 'r',
        encoding: 'e',
        kind: 'k',
        payload: 'aGk=',
      },
      { payload: 'aG8=' },
    ]
    const { items } = await api.call('storage/items.import', { queue_name: queue, items: given })
    expect(items).toEqual([
      { ...given[0], id: expect.not.stringMatching('0ujtsYcgvSTl8PAuAdqWYSMnLOv'), created_at: noonText },
      {
        id: expect.any(String),
        lease_deadline: '0001-01-01T00:00:00Z',
        expire_deadline: '2030-11-16T12:00:00Z',
        created_at: noonText,
        payload: 'aG8=',
      },
    ])
    expect(await list(queue)).toEqual(items)
    expect(readTexts((await api.lease(queue, 10)).items)).toEqual(['ho'])
    const complete = { queue_name: queue, request_timeout: '1m', ids: [items[0].id] }
    await api.call('queue.complete', complete)
  })

  it('an imported item keeps its lease deadline even if it is not leased', async () => {
    await api.setClock({ now: noonText })
    const queue = await api.createQueue()
    const item = { lease_deadline: '2029-01-01T00:00:00Z', payload: 'aGk=' }
    const { items } = await api.call('storage/items.import', { queue_name: queue, items: [item] })
    expect(items[0]).toMatchObject(item)
    expect((await list(queue))[0]).toMatchObject(item)
    const leased = (await api.lease(queue)).items[0]
    expect(leased.lease_deadline).toBe('2030-11-15T12:01:00Z')
    await api.call('queue.retry', { queue_name: queue, items: [{ id: leased.id }] })
    expect((await list(queue))[0]).toMatchObject({ lease_deadline: '0001-01-01T00:00:00Z' })
  })

  it('an import skips a source_id that exists, until its item is removed', async () => {
    const queue = await api.createQueue()
    const one = { source_id: 'elsewhere-1', payload: 'MQ==' }
    const two = { source_id: 'elsewhere-2', payload: 'Mg==' }
    const again = { ...one, payload: 'Mw==' }
    const first = await api.call('storage/items.import', { queue_name: queue, items: [one, two, again] })
    expect(first.items.map((item: Item) => item.id === undefined)).toEqual([false, false, true])
    expect(first.items[2]).toMatchObject(again)
    const second = await api.call('storage/items.import', { queue_name: queue, items: [one] })
    expect(second.items[0].id).toBeUndefined()
    expect(readTexts(await list(queue))).toEqual(['1', '2'])
    await api.call('storage/items.delete', { queue_name: queue, ids: [first.items[0].id] })
    await api.call('storage/items.import', { queue_name: queue, items: [again] })
    expect(readTexts(await list(queue))).toEqual(['2', '3'])
  })

  it('imported items wake a waiting lease', async () => {
    const queue = await api.createQueue()
    const waiting = api.lease(queue, 5)
    await api.call('storage/items.import', { queue_name: queue, items: [{ payload: 'aGk=' }] })
    expect(readTexts((await waiting).items)).toEqual(['hi'])
  })

  it('items.delete removes items in any state and ignores unknown ids', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'leased', 'waiting')
    await api.lease(queue)
    const scheduled = { utf8: 'scheduled', enqueue_at: '2090-01-01T00:00:00Z' }
    await api.call('queue.produce', { queue_name: queue, request_timeout: '1m', items: [scheduled] })
    const later = (await api.call('storage/scheduled.list', { queue_name: queue })).items
    const ids = [...(await list(queue)), ...later].map((item) => item.id)
    await api.call('storage/items.delete', {
      queue_name: queue,
      ids: [...ids, '0ujtsYcgvSTl8PAuAdqWYSMnLOv'],
    })
    expect(await list(queue)).toEqual([])
    expect(await api.call('storage/scheduled.list', { queue_name: queue })).toEqual({})
  })

  it('a list ends at 4 MiB of payloads, and a pivot continues it', async () => {
    const queue = await api.createQueue()
    const text = 'x'.repeat(900_000)
    for (let item = 0; item < 7; item++) await api.produce(queue, `${item}${text}`)
    const seen: string[] = []
    const lengths: number[] = []
    for (let pivot = ''; lengths.length < 5; ) {
      const page = (await list(queue, { pivot })).filter(({ id }) => id !== pivot)
      if (page.length === 0) break
      lengths.push(page.length)
      seen.push(...page.map(({ payload }) => Buffer.from(payload ?? '', 'base64').toString('utf8', 0, 1)))
      pivot = page.at(-1)?.id ?? ''
    }
    expect(lengths).toEqual([5, 2])
    expect(seen.toSorted()).toEqual(['0', '1', '2', '3', '4', '5', '6'])
  })

  it('a list of more items than are read at once has all of them in the order of their ids', async () => {
    const queue = await api.createQueue()
    await api.call('storage/items.import', {
      queue_name: queue,
      items: Array.from({ length: 1_203 }, () => ({ payload: 'AQI=' })),
    })
    const ids = (await list(queue, { limit: 65_536 })).map(({ id }) => id)
    expect(new Set(ids).size).toBe(1_203)
    expect(ids).toEqual(ids.toSorted())
    expect(await list(queue, { limit: 701 })).toHaveLength(701)
  })
})
