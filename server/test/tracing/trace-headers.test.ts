/** The trace of an item without a collector: it travels with the item in any case. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { describeServer, type StoreServer } from '../http/store-server.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`

let created = 0
async function createQueues(server: StoreServer) {
  created += 1
  const [queue, dead] = [`travel-${created}`, `travel-${created}-dead`]
  await server.call('POST', '/api/v1/queues', { name: dead })
  await server.call('POST', '/api/v1/queues', { name: queue, policy: { dead_queue: dead } })
  return { queue, dead }
}

for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
  describeServer(`the trace of items (${store})`, store, {}, (server) => {
    it('the traceparent of a produce request comes with the item, the letter and the redriven item', async () => {
      const { queue, dead } = await createQueues(server)
      const client = createClient({ url: server.url })
      await client.produce(queue, 'x', { traceparent, tracestate: 'rojo=1,congo=2' })
      const { partition, items } = await client.lease(queue, { clientId: 'w' })
      expect(items[0]).toMatchObject({ traceparent, tracestate: 'rojo=1,congo=2' })
      await client.retry(queue, partition, [{ id: items[0]?.id ?? '', isDead: true }])

      const { letters } = await server.call('GET', `/api/v1/letters?queue=${dead}`)
      expect(letters[0].trace_id).toBe(traceId)
      const letter = await server.call('GET', `/api/v1/letters/${letters[0].id}`)
      expect(letter.trace_id).toBe(traceId)
      expect(letter.headers).toEqual([
        { name: 'traceparent', text: traceparent },
        { name: 'tracestate', text: 'rojo=1,congo=2' },
      ])
      await server.call('POST', '/api/v1/letters/redrive', { ids: [letter.id] })
      const again = await client.lease(queue, { clientId: 'w' })
      expect(again.items[0]).toMatchObject({ traceparent, tracestate: 'rojo=1,congo=2' })
    })

    it('an invalid traceparent is ignored, and an invalid tracestate is left out', async () => {
      const { queue } = await createQueues(server)
      const client = createClient({ url: server.url })
      await client.produce(queue, 'a', { traceparent: `${traceparent}-x`, tracestate: 'rojo=1' })
      await client.produce(queue, 'b', { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` })
      await client.produce(queue, 'c', { traceparent, tracestate: 'x'.repeat(600) })
      const { items } = await client.lease(queue, { clientId: 'w', countMax: 3 })
      expect(items.map((item) => [item.text(), item.traceparent, item.tracestate])).toEqual([
        ['a', null, null],
        ['b', null, null],
        ['c', traceparent, null],
      ])
    })

    it('a call that is repeated with the same key and another trace is the same call', async () => {
      const { queue } = await createQueues(server)
      const client = createClient({ url: server.url })
      const first = await client.produceOnce(queue, 'key', 'x', { traceparent })
      const other = traceparent.replace('00f067aa0ba902b7', 'b7ad6b7169203331')
      const second = await client.produceOnce(queue, 'key', 'x', { traceparent: other })
      expect(second).toEqual({ ...first, isRepeat: true })
      await expect(client.produceOnce(queue, 'key', 'y', { traceparent })).rejects.toMatchObject({
        code: 'IDEMPOTENCY_KEY_REUSED',
      })
    })

    it('a lease answer has traces only if the client asks for them', async () => {
      const { queue } = await createQueues(server)
      await createClient({ url: server.url }).produce(queue, ['x', 'y'], { traceparent })
      const lease = async (headers: Record<string, string>) => {
        const body = { queue_name: queue, client_id: 'w', batch_size: 1, request_timeout: '1s' }
        return (await server.request('POST', '/v1/queue.lease', body, headers)).body.items[0]
      }
      expect(Object.keys(await lease({}))).toEqual(['id', 'attempts', 'lease_deadline', 'bytes'])
      expect(await lease({ 'x-redrive-trace': '1' })).toMatchObject({ traceparent })
    })

    it('the trace of a broadcast is pushed, is found in the letter, and is pushed again', async () => {
      const received: Record<string, unknown>[] = []
      const target = createServer((request, response) => {
        received.push(request.headers)
        response.writeHead(received.length === 1 ? 410 : 200).end()
      }).listen(0, '127.0.0.1')
      await new Promise((resolve) => target.once('listening', resolve))
      const { port } = target.address() as AddressInfo
      try {
        await createWebhook(server, `http://127.0.0.1:${port}/hook`)
        const answer = await fetch(`${server.url}/channel/events/broadcast`, {
          method: 'POST',
          headers: { ...producerHeaders, traceparent, tracestate: 'rojo=1' },
          body: '{}',
        })
        expect(answer.status).toBe(201)
        const find = () => server.call('GET', `/api/v1/letters?trace_id=${traceId}&queue=${consumerQueue()}`)
        const consumerQueue = () => deadQueues.join('&queue=')
        const deadQueues = await listDeadQueues(server)
        await until(async () => (await find()).letters.length > 0)
        const [letter] = (await find()).letters
        expect(letter).toMatchObject({ trace_id: traceId, origin: { kind: 'webhook' } })
        expect(received[0]).toMatchObject({ traceparent, tracestate: 'rojo=1' })
        await server.call('POST', '/api/v1/letters/redrive', { ids: [letter.id] })
        await until(async () => received.length > 1)
        expect(received[1]).toMatchObject({ traceparent, tracestate: 'rojo=1' })
      } finally {
        target.closeAllConnections()
        target.close()
      }
    })
  })
}

const producerHeaders = {
  'x-broker-channel-token': 'events-token',
  'x-broker-producer-id': 'p',
  'x-broker-producer-token': 'p-token',
}

async function createWebhook(server: StoreServer, callbackUrl: string): Promise<void> {
  const put = async (path: string, form: Record<string, string>): Promise<void> => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    await fetch(server.url + path, { method: 'PUT', headers, body: new URLSearchParams(form).toString() })
  }
  await put('/producer/p', { token: 'p-token' })
  await put('/channel/events', { token: 'events-token' })
  await put('/channel/events/consumer/c', { token: 'c-token', callbackUrl })
}

async function listDeadQueues(server: StoreServer): Promise<string[]> {
  const { queues } = await server.call('GET', '/api/v1/queues')
  return queues.map(({ name }: { name: string }) => name).filter((name: string) => !name.startsWith('travel'))
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 400; attempt++) {
    if (await isDone()) return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error('it did not happen within 10 s')
}
