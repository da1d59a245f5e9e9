import { request } from 'node:http'
import { expect, it } from 'vitest'
import { connectRaw } from '../http/raw-connection.ts'
import type { Answer } from './queue-client.ts'
import { describeQueueServers, type QueueServer, readTexts } from './servers.ts'

const statsOf = async (api: QueueServer, queue: string) =>
  (await api.call('queue.stats', { queue_name: queue })).logicalQueues[0]

const leaseWaits = async (api: QueueServer, queue: string, count: number): Promise<void> => {
  await expect.poll(async () => (await statsOf(api, queue)).lease_waiting ?? 0).toBe(count)
}

describeQueueServers('items', (api) => {
  it('items are leased in the order in which they were produced, with all their fields', async () => {
    const queue = await api.createQueue()
    const items = [
      { encoding: 'json', kind: 'order', reference: 'r-1', bytes: 'AP+A' },
      { utf8: 'grüße' },
      { bytes: 'aGk=', utf8: '' },
      {},
    ]
    await api.call('queue.produce', { queue_name: queue, request_timeout: '1m', items })
    const leased = await api.lease(queue, 10)
    expect(leased.queue_name).toBe(queue)
    expect(leased.partition).toBeUndefined()
    const facts = leased.items.map(({ id, lease_deadline, ...rest }: Record<string, string>) => rest)
    expect(facts).toEqual([
      { encoding: 'json', kind: 'order', reference: 'r-1', attempts: 1, bytes: 'AP+A' },
      { attempts: 1, bytes: Buffer.from('grüße').toString('base64') },
      { attempts: 1, bytes: 'aGk=' },
      { attempts: 1 },
    ])
    expect(new Set(leased.items.map((item: { lease_deadline: string }) => item.lease_deadline)).size).toBe(1)
    const ids = leased.items.map((item: { id: string }) => item.id)
    expect(ids).toEqual(ids.toSorted())
  })

  it('1,000 items can be produced, leased and completed in one call each', async () => {
    const queue = await api.createQueue()
    const texts = Array.from({ length: 1_000 }, (_, index) => `${index}`)
    await api.produce(queue, ...texts)
    const { items } = await api.lease(queue, 1_000)
    expect(readTexts(items)).toEqual(texts)
    const ids = items.map((item: { id: string }) => item.id)
    await api.call('queue.complete', { queue_name: queue, request_timeout: '1m', ids })
    expect(await statsOf(api, queue)).toEqual({
      partitions: [{ average_age: '0s', average_leased_age: '0s' }],
    })
  })

  it('produced items wake a waiting lease', async () => {
    const queue = await api.createQueue()
    const waiting = api.lease(queue, 10)
    await leaseWaits(api, queue, 1)
    await api.produce(queue, 'one', 'two')
    expect(readTexts((await waiting).items)).toEqual(['one', 'two'])
    expect((await statsOf(api, queue)).lease_waiting).toBeUndefined()
  })

  it('items are assigned in turn to the waiting leases', async () => {
    const queue = await api.createQueue()
    const first = api.lease(queue, 10, 'first')
    await leaseWaits(api, queue, 1)
    const second = api.lease(queue, 1, 'second')
    await leaseWaits(api, queue, 2)
    const third = api.lease(queue, 10, 'third')
    await leaseWaits(api, queue, 3)
    await api.produce(queue, '1', '2', '3', '4', '5')
    expect(readTexts((await first).items)).toEqual(['1', '4'])
    expect(readTexts((await second).items)).toEqual(['2'])
    expect(readTexts((await third).items)).toEqual(['3', '5'])
  })

  it('a lease that gets no item within its timeout is answered with 454', async () => {
    const queue = await api.createQueue()
    const body = { queue_name: queue, batch_size: 1, client_id: 'w', request_timeout: '30ms' }
    expect(await api.callRefused('queue.lease', body, 454)).toBe(
      'request timeout; no items are in the queue, try again',
    )
  })

  it('a second lease of a client that already waits is refused', async () => {
    const queue = await api.createQueue()
    const waiting = api.lease(queue, 1, 'same')
    await leaseWaits(api, queue, 1)
    const body = { queue_name: queue, batch_size: 1, client_id: 'same', request_timeout: '1s' }
    expect(await api.callRefused('queue.lease', body)).toBe(
      'duplicate client id; a client cannot make multiple leased requests to the same queue',
    )
    await api.produce(queue, 'one')
    expect(readTexts((await waiting).items)).toEqual(['one'])
    await api.produce(queue, 'two')
    expect(readTexts((await api.lease(queue, 1, 'same')).items)).toEqual(['two'])
  })

  it('a client that has disconnected gets no items', async () => {
    const queue = await api.createQueue()
    const raw = await connectRaw(Number(new URL(api.url).port))
    const body = JSON.stringify({
      queue_name: queue,
      batch_size: 5,
      client_id: 'gone',
      request_timeout: '5m',
    })
    raw.write(
      `POST /v1/queue.lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await leaseWaits(api, queue, 1)
    raw.socket.destroy()
    await leaseWaits(api, queue, 0)
    await api.produce(queue, 'one')
    const { items } = await api.lease(queue, 1, 'there')
    expect(readTexts(items)).toEqual(['one'])
    expect(items[0].attempts).toBe(1)
  })

  it('a client whose connection was just reset gets no items', async () => {
    const queue = await api.createQueue()
    const port = Number(new URL(api.url).port)
    for (let times = 0; times < 10; times++) {
      const raw = await connectRaw(port)
      const asked = { queue_name: queue, batch_size: 5, client_id: 'gone', request_timeout: '5m' }
      const body = JSON.stringify(asked)
      raw.write(
        `POST /v1/queue.lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      await leaseWaits(api, queue, 1)
      raw.socket.resetAndDestroy()
      await new Promise((resolve) => raw.socket.once('close', resolve))
      await api.produce(queue, `item-${times}`)
      const { items } = await api.lease(queue, 1, 'there')
      expect(readTexts(items)).toEqual([`item-${times}`])
      expect(items[0].attempts).toBe(1)
      await api.call('queue.complete', { queue_name: queue, request_timeout: '1m', ids: [items[0].id] })
    }
  })

  it('a client that disconnected can lease again immediately, and no error is logged', async () => {
    const queue = await api.createQueue()
    const linesBefore = api.lines.length
    const body = { queue_name: queue, batch_size: 5, client_id: 'same', request_timeout: '5m' }
    for (let times = 0; times < 10; times++) {
      const asked = request(`${api.url}/v1/queue.lease`, { method: 'POST', agent: false })
      asked.on('error', () => {})
      asked.end(JSON.stringify(body))
      await leaseWaits(api, queue, 1)
      asked.destroy()
      const again = { ...body, request_timeout: '20ms' }
      expect(await api.callRefused('queue.lease', again, 454)).toContain('no items are in the queue')
    }
    expect(api.lines.slice(linesBefore)).toEqual([])
  })

  it('a retried item returns to the tail with a new id', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'one', 'two')
    const first = (await api.lease(queue)).items[0]
    await api.call('queue.retry', { queue_name: queue, items: [{ id: first.id }] })
    const listed = (await api.call('storage/items.list', { queue_name: queue })).items
    expect(readTexts(listed)).toEqual(['two', 'one'])
    expect(listed[1].id).not.toBe(first.id)
    expect(listed[1]).toMatchObject({ attempts: 1, lease_deadline: '0001-01-01T00:00:00Z' })
    expect(listed[1].is_leased).toBeUndefined()
    const complete = { queue_name: queue, request_timeout: '1m', ids: [first.id] }
    expect(await api.callRefused('queue.complete', complete)).toBe(
      `invalid storage id; '${first.id}' does not exist`,
    )
    expect((await api.lease(queue, 2)).items[1]).toMatchObject({ id: listed[1].id, attempts: 2 })
  })

  it('a complete call completes all of its items or none', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'one', 'two', 'three')
    const { items } = await api.lease(queue, 2)
    const [, , third] = (await api.call('storage/items.list', { queue_name: queue })).items
    const ids = [items[0].id, third.id, items[1].id]
    expect(await api.callRefused('queue.complete', { queue_name: queue, request_timeout: '1m', ids })).toBe(
      `item(s) cannot be completed; '${third.id}' is not marked as leased`,
    )
    expect((await statsOf(api, queue)).partitions[0]).toMatchObject({ total: 3, total_leased: 2 })
  })

  it('a client can complete items that another client leased', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'one')
    const { items } = await api.lease(queue, 1, 'somebody')
    const ids = items.map((item: { id: string }) => item.id)
    await api.call('queue.complete', { queue_name: queue, request_timeout: '1m', ids })
    expect(await api.call('storage/items.list', { queue_name: queue })).toEqual({})
  })

  it('queue.clear removes queued, scheduled and leased items as requested', async () => {
    const queue = await api.createQueue()
    const fill = async (): Promise<void> => {
      await api.produce(queue, 'leased')
      await api.lease(queue)
      await api.produce(queue, 'waiting')
      const scheduled = { utf8: 'scheduled', enqueue_at: '2090-01-01T00:00:00Z' }
      await api.call('queue.produce', { queue_name: queue, request_timeout: '1m', items: [scheduled] })
    }
    const left = async (): Promise<string[]> => [
      ...readTexts((await api.call('storage/items.list', { queue_name: queue })).items),
      ...readTexts((await api.call('storage/scheduled.list', { queue_name: queue })).items),
    ]
    await fill()
    await api.call('queue.clear', { queue_name: queue, queue: true })
    expect(await left()).toEqual(['leased', 'scheduled'])
    await api.call('queue.clear', { queue_name: queue, scheduled: true, destructive: true })
    expect(await left()).toEqual(['leased'])
    await fill()
    await api.call('queue.clear', { queue_name: queue, queue: true, destructive: true })
    expect(await left()).toEqual(['scheduled'])
  })

  it('a produce goes to the partition with the fewest items, and a lease takes from the partition with the most', async () => {
    const queue = await api.createQueue({ requested_partitions: 3 })
    await api.produce(queue, 'a1', 'a2', 'a3')
    await api.produce(queue, 'b1')
    await api.produce(queue, 'c1', 'c2')
    await api.produce(queue, 'b2')
    const totals = async (): Promise<number[]> =>
      (await statsOf(api, queue)).partitions.map(({ total = 0 }) => total)
    expect(await totals()).toEqual([3, 2, 2])
    expect((await statsOf(api, queue)).partitions.map(({ partition = 0 }) => partition)).toEqual([0, 1, 2])
    const { partition, items } = await api.lease(queue, 10)
    expect([partition, readTexts(items)]).toEqual([undefined, ['a1', 'a2', 'a3']])
    const next = await api.lease(queue, 10)
    expect([next.partition, readTexts(next.items)]).toEqual([1, ['b1', 'b2']])
  })

  it('requests above the limit of a queue are refused with 454', async () => {
    const queue = await api.createQueue()
    await api.hold(queue, true)
    const requests = Array.from({ length: 110 }, (_, index) =>
      api.send('queue.produce', { queue_name: queue, request_timeout: '1m', items: [{ utf8: `${index}` }] }),
    )
    const answered: Answer[] = []
    for (const request of requests) void request.then((answer) => answered.push(answer))
    await expect.poll(() => answered.length, { timeout: 30_000 }).toBe(10)
    const [refused] = answered as [Answer]
    expect([refused.status, refused.statusText, refused.body.message]).toEqual([
      454,
      'Retry Request',
      'queue is overloaded; try again later',
    ])
    expect((await statsOf(api, queue)).produce_waiting).toBe(100)
    await api.hold(queue, false)
    const statuses = (await Promise.all(requests)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(100)
    expect((await statsOf(api, queue)).partitions[0].total).toBe(100)
  })

  it('a lease that waits in a deleted queue is answered with 453', async () => {
    const queue = await api.createQueue()
    const body = { queue_name: queue, batch_size: 1, client_id: 'w', request_timeout: '5m' }
    const waiting = api.callRefused('queue.lease', body, 453)
    await leaseWaits(api, queue, 1)
    await api.call('queues.delete', { queue_name: queue, force: true })
    expect(await waiting).toBe('queue is shutting down')
    expect(await api.callRefused('queue.lease', body)).toBe(
      `queue does not exist; no such queue named '${queue}'`,
    )
  })
})
