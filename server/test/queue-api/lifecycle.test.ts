import { expect, it } from 'vitest'
import { describeQueueServers, noonText, readTexts } from './servers.ts'

const dayLater = '2030-11-16T12:00:00Z'

describeQueueServers('the lifecycle of items', (api) => {
  const listed = async (queue: string, method = 'storage/items.list') =>
    (await api.call(method, { queue_name: queue })).items ?? []

  it('a lease lasts for the lease timeout, and its item then returns to the tail with a new id', async () => {
    await api.setClock({ now: noonText })
    const queue = await api.createQueue({ lease_timeout: '1m' })
    await api.produce(queue, 'one')
    const { items } = await api.lease(queue)
    await api.produce(queue, 'two')
    expect(items[0].lease_deadline).toBe('2030-11-15T12:01:00Z')
    await api.setClock({ advance: '59.999999s' })
    expect((await listed(queue))[0]).toMatchObject({ id: items[0].id, is_leased: true })
    await api.setClock({ advance: '1s' })
    const after = await listed(queue)
    expect(readTexts(after)).toEqual(['two', 'one'])
    expect(after[1]).toMatchObject({
      attempts: 1,
      lease_deadline: '0001-01-01T00:00:00Z',
      created_at: noonText,
      expire_deadline: dayLater,
    })
    expect(after[1].id).not.toBe(items[0].id)
  })

  it('the end of a lease wakes a waiting lease', async () => {
    await api.setClock({ now: noonText })
    const queue = await api.createQueue()
    await api.produce(queue, 'one')
    await api.lease(queue)
    const waiting = api.lease(queue, 1, 'other')
    await api.setClock({ advance: '61s' })
    expect((await waiting).items[0].attempts).toBe(2)
  })

  it('an item without attempts left moves to the dead queue with all its fields', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue({ expire_timeout: '48h' })
    const queue = await api.createQueue({ dead_queue: dead, max_attempts: 1 })
    const item = { utf8: 'one', kind: 'order', encoding: 'text', reference: 'r-1' }
    await api.call('queue.produce', { queue_name: queue, request_timeout: '1m', items: [item] })
    const { items } = await api.lease(queue)
    const waiting = api.lease(dead, 1, 'undertaker')
    await api.setClock({ advance: '61s' })
    const { items: letters } = await waiting
    expect(letters[0]).toMatchObject({ attempts: 1, kind: 'order', encoding: 'text', reference: 'r-1' })
    expect(readTexts(letters)).toEqual(['one'])
    expect(await listed(queue)).toEqual([])
    expect((await listed(dead))[0]).toMatchObject({
      source_id: items[0].id,
      created_at: '2030-11-15T12:01:01Z',
      expire_deadline: '2030-11-17T12:01:01Z',
    })
    expect(letters[0].id).not.toBe(items[0].id)
  })

  it('an item that waited longer than the expire timeout is dead', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue({ dead_queue: dead, expire_timeout: '1h' })
    await api.produce(queue, 'one')
    await api.setClock({ advance: '1h1s' })
    expect([await listed(queue), readTexts(await listed(dead))]).toEqual([[], ['one']])
  })

  it('a leased item does not expire before its lease ends', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue({ dead_queue: dead, expire_timeout: '1h', lease_timeout: '1h' })
    await api.produce(queue, 'one')
    await api.setClock({ advance: '30m' })
    await api.lease(queue)
    await api.setClock({ advance: '45m' })
    expect((await listed(queue))[0].is_leased).toBe(true)
    await api.setClock({ advance: '16m' })
    expect([await listed(queue), readTexts(await listed(dead))]).toEqual([[], ['one']])
  })

  it('an item that dies without a dead queue is deleted and logged', async () => {
    await api.setClock({ now: noonText })
    const queue = await api.createQueue({ max_attempts: 1 })
    await api.produce(queue, 'one')
    await api.lease(queue)
    await api.setClock({ advance: '61s' })
    expect(await listed(queue)).toEqual([])
    expect(api.lines.some((line) => line.queue === queue && line.dropped === 1)).toBe(true)
  })

  it('an item that is declared dead moves immediately, with its reported error', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue({ dead_queue: dead })
    await api.produce(queue, 'one', 'two')
    const { items } = await api.lease(queue, 2)
    await api.call(
      'queue.retry',
      { queue_name: queue, items: [{ id: items[0].id, dead: true }, { id: items[1].id }] },
      { headers: { 'x-redrive-error': '{"error_class":"CardRefused","message":"no \\u20ac left"}' } },
    )
    expect(readTexts(await listed(dead))).toEqual(['one'])
    expect(readTexts(await listed(queue))).toEqual(['two'])
    expect((await listed(dead))[0].source_id).toBe(items[0].id)
  })

  /** Leases the one item of a queue, says the number of the attempt, and gives it back. */
  const leaseAndRetry = async (queue: string, how: { retry_at?: string } = {}) => {
    const { items } = await api.lease(queue)
    await api.call('queue.retry', { queue_name: queue, items: [{ id: items[0].id, ...how }] })
    return { id: items[0].id, attempts: items[0].attempts }
  }

  it('an item that is retried more often than max_attempts moves to the dead queue', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue({ dead_queue: dead, max_attempts: 2 })
    await api.produce(queue, 'one')
    for (const attempts of [1, 2]) {
      const given = await leaseAndRetry(queue)
      expect(given.attempts).toBe(attempts)
      const after = await listed(queue)
      expect(after).toMatchObject([{ attempts, lease_deadline: '0001-01-01T00:00:00Z' }])
      expect(after[0].id).not.toBe(given.id)
      expect(await listed(dead)).toEqual([])
    }
    const last = await leaseAndRetry(queue)
    expect(last.attempts).toBe(3)
    expect(await listed(queue)).toEqual([])
    const letters = await listed(dead)
    expect(readTexts(letters)).toEqual(['one'])
    expect(letters).toMatchObject([{ source_id: last.id }])
    expect(letters[0].id).not.toBe(last.id)
  })

  it('a retry for later is possible until the attempts exceed max_attempts', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue({ dead_queue: dead, max_attempts: 1 })
    await api.produce(queue, 'one')
    await leaseAndRetry(queue, { retry_at: '2030-11-15T12:00:30Z' })
    expect(await listed(queue, 'storage/scheduled.list')).toMatchObject([{ attempts: 1 }])
    await api.setClock({ advance: '31s' })
    await leaseAndRetry(queue, { retry_at: '2030-11-15T13:00:00Z' })
    expect(await listed(queue, 'storage/scheduled.list')).toEqual([])
    expect([await listed(queue), readTexts(await listed(dead))]).toEqual([[], ['one']])
  })

  it('an item that was retried max_attempts times is dead when its next lease ends', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue({ dead_queue: dead, max_attempts: 2 })
    await api.produce(queue, 'reported', 'crashed')
    const { items } = await api.lease(queue, 2)
    const given = items.map(({ id }: { id: string }) => ({ id }))
    await api.call('queue.retry', { queue_name: queue, items: given })
    await leaseAndRetry(queue)
    await api.lease(queue)
    await api.setClock({ advance: '61s' })
    expect([readTexts(await listed(queue)), readTexts(await listed(dead))]).toEqual([
      ['reported'],
      ['crashed'],
    ])
    await api.lease(queue)
    await api.setClock({ advance: '61s' })
    expect([await listed(queue), readTexts(await listed(dead))]).toEqual([[], ['crashed', 'reported']])
  })

  it('an item that is retried too often without a dead queue is deleted and logged', async () => {
    const queue = await api.createQueue({ max_attempts: 1 })
    await api.produce(queue, 'one')
    await leaseAndRetry(queue)
    expect(await listed(queue)).toHaveLength(1)
    await leaseAndRetry(queue)
    expect(await listed(queue)).toEqual([])
    expect(api.lines.some((line) => line.queue === queue && line.dropped === 1)).toBe(true)
  })

  it('an invalid X-Redrive-Error is refused and retries no item', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'one')
    const { items } = await api.lease(queue)
    const body = { queue_name: queue, items: [{ id: items[0].id }] }
    for (const [header, why] of [
      ['not json', 'it is not valid JSON'],
      ['{"colour":"red"}', 'it can have only error_class'],
      ['{"stack":7}', 'it can have only error_class'],
      [`{"stack":"${'x'.repeat(9_000)}"}`, "cannot be greater than '8192' characters"],
    ] as const) {
      const message = await api.callRefused('queue.retry', body, 400, {
        headers: { 'x-redrive-error': header },
      })
      expect(message).toMatch(`X-Redrive-Error is invalid; ${why}`)
    }
    expect((await listed(queue))[0].is_leased).toBe(true)
  })

  it('a scheduled item is not leased before its time, and then goes to the tail', async () => {
    await api.setClock({ now: noonText })
    const queue = await api.createQueue()
    const at = (seconds: string, utf8: string) => ({ utf8, enqueue_at: `2030-11-15T12:00:${seconds}Z` })
    const items = [at('10', 'later'), at('10', 'after it'), at('00.100', 'now'), at('00.100001', 'soon')]
    await api.call('queue.produce', { queue_name: queue, request_timeout: '1m', items })
    expect(readTexts(await listed(queue))).toEqual(['now'])
    const scheduled = await listed(queue, 'storage/scheduled.list')
    expect(readTexts(scheduled).toSorted()).toEqual(['after it', 'later', 'soon'])
    expect(scheduled[0]).toMatchObject({
      enqueue_at: '2030-11-15T12:00:10Z',
      lease_deadline: '0001-01-01T00:00:00Z',
    })
    const stats = (await api.call('queue.stats', { queue_name: queue })).logicalQueues[0].partitions[0]
    expect(stats).toMatchObject({ total: 1, scheduled: 3 })
    const complete = { queue_name: queue, request_timeout: '1m', ids: [scheduled[0].id] }
    expect(await api.callRefused('queue.complete', complete)).toMatch('does not exist')
    await api.setClock({ advance: '10.000001s' })
    const after = await listed(queue)
    expect(readTexts(after)).toEqual(['now', 'soon', 'later', 'after it'])
    expect(after[2].id).not.toBe(scheduled[0].id)
    expect(after[2].enqueue_at).toBeUndefined()
  })

  it('a retry for later is scheduled in its partition', async () => {
    await api.setClock({ now: noonText })
    const queue = await api.createQueue({ requested_partitions: 2 })
    await api.produce(queue, 'zero')
    await api.produce(queue, 'one')
    await api.lease(queue)
    const { partition, items } = await api.lease(queue)
    expect(partition).toBe(1)
    const retried = { id: items[0].id, retry_at: '2030-11-15T12:00:30Z' }
    await api.call('queue.retry', { queue_name: queue, partition, items: [retried] })
    const scheduled = (await api.call('storage/scheduled.list', { queue_name: queue, partition })).items
    expect(scheduled).toMatchObject([{ enqueue_at: '2030-11-15T12:00:30Z', attempts: 1 }])
    const waiting = api.lease(queue, 1, 'other')
    await api.setClock({ advance: '31s' })
    expect((await waiting).items[0]).toMatchObject({ attempts: 2 })
  })

  it('an update applies new timeouts to new items, and max_attempts and dead_queue to all items', async () => {
    await api.setClock({ now: noonText })
    const dead = await api.createQueue()
    const queue = await api.createQueue()
    await api.produce(queue, 'one')
    await api.lease(queue)
    await api.call('queues.update', {
      queue_name: queue,
      lease_timeout: '10m',
      expire_timeout: '2h',
      max_attempts: 1,
      dead_queue: dead,
    })
    await api.produce(queue, 'two')
    expect(await listed(queue)).toMatchObject([
      { lease_deadline: '2030-11-15T12:01:00Z', expire_deadline: dayLater },
      { expire_deadline: '2030-11-15T14:00:00Z' },
    ])
    expect((await api.lease(queue)).items[0].lease_deadline).toBe('2030-11-15T12:10:00Z')
    await api.setClock({ advance: '61s' })
    expect(readTexts(await listed(dead))).toEqual(['one'])
  })
})
