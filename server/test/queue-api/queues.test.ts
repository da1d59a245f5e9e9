import { expect, it } from 'vitest'
import { describeQueueServers, noonText } from './servers.ts'

describeQueueServers('queues', (api) => {
  const info = (queue: string) => api.call('queues.info', { queue_name: queue })

  it('a queue shows its definition in normalised form, without zero values', async () => {
    await api.setClock({ now: noonText })
    const queue = await api.createQueue({ lease_timeout: '90s', expire_timeout: '36h' })
    expect(await info(queue)).toEqual({
      queue_name: queue,
      created_at: noonText,
      updated_at: noonText,
      lease_timeout: '1m30s',
      expire_timeout: '36h0m0s',
      requested_partitions: 1,
      namespace: '_system',
    })
  })

  it.each([
    ['0.5m', '30s'],
    ['1500ms', '1.5s'],
    ['300ms', '300ms'],
    ['2500ns', '2.5µs'],
    ['1h', '1h0m0s'],
    ['1h30.5s', '1h0m30.5s'],
    ['100us', '100µs'],
  ])('a timeout of %s is returned as %s', async (given, shown) => {
    const queue = await api.createQueue({ lease_timeout: given })
    expect((await info(queue)).lease_timeout).toBe(shown)
  })

  it('an empty update keeps the timeouts and resets all other fields', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue({ reference: 'team a', max_attempts: 3, dead_queue: dead })
    expect(await info(queue)).toMatchObject({ reference: 'team a', max_attempts: 3, dead_queue: dead })
    await api.setClock({ advance: '1.5s' })
    await api.call('queues.update', { queue_name: queue, requested_partitions: 7 })
    expect(await info(queue)).toEqual({
      queue_name: queue,
      created_at: noonText,
      updated_at: '2030-11-15T12:00:01.500Z',
      lease_timeout: '1m0s',
      expire_timeout: '24h0m0s',
      requested_partitions: 1,
      namespace: '_system',
    })
  })

  it('concurrent updates of both timeouts never leave a lease timeout above the expire timeout', async () => {
    for (let round = 0; round < 8; round++) {
      const queue = await api.createQueue({ lease_timeout: '1m', expire_timeout: '24h' })
      const answers = await Promise.all([
        api.send('queues.update', { queue_name: queue, lease_timeout: '2h' }),
        api.send('queues.update', { queue_name: queue, expire_timeout: '1h' }),
      ])
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400])
      expect(answers.find(({ status }) => status === 400)?.body.message).toBe(
        'lease timeout is too long; 2h0m0s cannot be greater than the expire timeout 1h0m0s',
      )
    }
  })

  it('a dead queue cannot get a dead queue of its own', async () => {
    const dead = await api.createQueue()
    const other = await api.createQueue()
    await api.createQueue({ dead_queue: dead })
    expect(await api.callRefused('queues.update', { queue_name: dead, dead_queue: other })).toBe(
      `dead_queue is invalid; '${dead}' is itself a dead_queue and cannot have one of its own`,
    )
  })

  it('a queue cannot be deleted while it is the dead queue of another', async () => {
    const dead = await api.createQueue()
    const queue = await api.createQueue({ dead_queue: dead })
    expect(await api.callRefused('queues.delete', { queue_name: dead })).toBe(
      `queue is in use; '${dead}' is the dead_queue of '${queue}', change that queue first`,
    )
    await api.call('queues.delete', { queue_name: queue })
    await api.call('queues.delete', { queue_name: dead })
    expect(await api.callRefused('queues.info', { queue_name: dead })).toMatch('queue does not exist')
  })

  it('a queue that is created again after its deletion is empty', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'one')
    await api.call('queues.delete', { queue_name: queue })
    const again = { queue_name: queue, lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }
    await api.call('queues.create', again)
    expect(await api.call('storage/items.list', { queue_name: queue })).toEqual({})
    await api.produce(queue, 'two')
    expect((await api.lease(queue, 5)).items).toHaveLength(1)
  })

  it('queues are listed by name, starting at the pivot', async () => {
    const names = ['list-Z', 'list-a', 'list-b', 'list-é']
    for (const queue_name of names.toReversed()) await api.createQueue({ queue_name })
    const list = async (body: Record<string, string | number>): Promise<string[]> =>
      ((await api.call('queues.list', body)).items ?? []).map(
        (item: { queue_name: string }) => item.queue_name,
      )
    expect(await list({ pivot: 'list-' })).toEqual(expect.arrayContaining(names))
    expect((await list({ pivot: 'list-' })).slice(0, 4)).toEqual(names)
    expect(await list({ pivot: 'list-a', limit: 2 })).toEqual(['list-a', 'list-b'])
    expect(await list({ pivot: 'list-aa', limit: 1 })).toEqual(['list-b'])
    expect(await list({ pivot: 'zzz' })).toEqual([])
    expect(await list({ pivot: 'list-', namespace: '_system', limit: 1 })).toEqual(['list-Z'])
    expect(await list({ namespace: 'nowhere' })).toEqual([])
  })

  it('queues and their items survive a restart', async () => {
    if (!api.isDurable) return
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue({ dead_queue: dead, max_attempts: 1 })
    await api.produce(queue, 'leased', 'waiting')
    await api.lease(queue)
    const later = { utf8: 'later', enqueue_at: '2030-11-15T12:00:30Z' }
    await api.call('queue.produce', { queue_name: queue, request_timeout: '1m', items: [later] })
    const look = async () => [
      await info(queue),
      await api.call('storage/items.list', { queue_name: queue }),
      await api.call('storage/scheduled.list', { queue_name: queue }),
    ]
    await api.restart()
    // The new server's clock is the real one, which is long before: nothing has come due.
    const before = await look()
    expect(before[1].items).toMatchObject([{ is_leased: true, attempts: 1 }, {}])
    expect(before[2].items).toHaveLength(1)
    await api.restart()
    // A lease from a clock that was ahead is shortened after the start, so its deadline may differ.
    const [queueAfter, itemsAfter, scheduledAfter] = await look()
    const withoutDeadlines = (items: readonly object[]) =>
      items.map((item) => ({ ...item, lease_deadline: undefined }))
    expect(queueAfter).toEqual(before[0])
    expect(withoutDeadlines(itemsAfter.items)).toEqual(withoutDeadlines(before[1].items))
    expect(scheduledAfter).toEqual(before[2])
    await api.setClock({ now: '2030-11-15T12:02:00Z' })
    const items = (await api.call('storage/items.list', { queue_name: queue })).items
    expect(items).toHaveLength(2)
    expect((await api.call('storage/items.list', { queue_name: dead })).items).toMatchObject([
      { source_id: before[1].items[0].id },
    ])
  })
})
