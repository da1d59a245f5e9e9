/** The spans of an item's way, as a real collector receives them. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { Secret } from '../../src/config/secrets/secret.ts'
import { version } from '../../src/version.ts'
import { type ReceivedSpan, startOtlpReceiver } from '../http/otlp-receiver.ts'
import { describeServer, type StoreServer } from '../http/store-server.ts'

const collector = await startOtlpReceiver()
afterAll(() => collector.close())

const settings = {
  'tracing.otlp_endpoint': collector.url,
  'tracing.otlp_headers': new Secret('api-key=abc,tenant=one'),
  'tracing.export_interval': 20,
  'tracing.service_name': 'redrive-test',
  'tracing.resource_attributes': ['deployment.environment.name=test'],
}

/** As a client sends it: its own span in a trace of its own. */
function createTrace() {
  const hex = (length: number) =>
    Array.from({ length }, () => Math.floor(Math.random() * 16).toString(16)).join('')
  const traceId = `a${hex(31)}`
  const spanId = `b${hex(15)}`
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` }
}

let created = 0
async function createQueues(server: StoreServer) {
  created += 1
  const [queue, dead] = [`orders-${created}`, `orders-${created}-dead`]
  await server.call('POST', '/api/v1/queues', { name: dead })
  await server.call('POST', '/api/v1/queues', { name: queue, policy: { dead_queue: dead } })
  return { queue, dead }
}

const pick = ({ traceId, spanId }: ReceivedSpan) => ({ traceId, spanId })

for (const store of ['SQLite file', 'PostgreSQL'] as const) {
  describeServer(`spans (${store})`, store, settings, (server) => {
    it('the spans of produce, lease, death, redrive and complete are related to the trace of the producer', async () => {
      const client = createClient({ url: server.url })
      const { queue, dead } = await createQueues(server)
      const { traceId, spanId, traceparent } = createTrace()
      await client.produce(queue, 'hello', { traceparent, tracestate: 'rojo=1' })

      const produce = await collector.waitFor(`produce ${queue}`)
      expect(produce).toMatchObject({ traceId, parentSpanId: spanId, kind: 4, status: 0, links: [] })
      expect(produce.endedAt).toBeGreaterThanOrEqual(produce.startedAt)

      const leased = await client.lease(queue, { clientId: 'w' })
      const [item] = leased.items
      if (item === undefined) throw new Error('nothing was leased')
      expect(item.traceparent).toBe(`00-${traceId}-${produce.spanId}-01`)
      expect(item.tracestate).toBe('rojo=1')
      expect(produce.attributes).toEqual({
        'messaging.system': 'redrive',
        'messaging.operation.name': 'produce',
        'messaging.operation.type': 'send',
        'messaging.destination.name': queue,
        'messaging.destination.partition.id': '0',
        'messaging.message.id': item.id,
      })
      const lease = await collector.waitFor(`lease ${queue}`)
      expect(lease).toMatchObject({ kind: 3, parentSpanId: undefined, links: [pick(produce)] })
      expect(lease.traceId).not.toBe(traceId)
      expect(lease.attributes).toMatchObject({
        'messaging.operation.type': 'receive',
        'messaging.message.id': item.id,
      })

      await client.retry(queue, leased.partition, [{ id: item.id, isDead: true }])
      const retry = await collector.waitFor(`retry ${queue}`)
      expect(retry).toMatchObject({ links: [pick(produce)] })
      expect(retry.attributes).toMatchObject({ 'messaging.operation.type': 'settle' })
      const death = await collector.waitFor(`dead-letter ${dead}`)
      expect(death).toMatchObject({ traceId, parentSpanId: produce.spanId, kind: 1 })
      expect(death.attributes).toMatchObject({ 'redrive.source_queue': queue })

      const found = await server.call('GET', `/api/v1/letters?trace_id=${traceId}`)
      expect(found.letters).toHaveLength(1)
      const [letter] = found.letters
      expect(letter.trace_id).toBe(traceId)

      await server.call('POST', '/api/v1/letters/redrive', { ids: [letter.id] })
      const redrive = await collector.waitFor(`redrive ${queue}`)
      expect(redrive).toMatchObject({ kind: 4, links: [pick(produce)] })
      expect(redrive.attributes).toMatchObject({ 'messaging.message.id': letter.id })

      const again = await client.lease(queue, { clientId: 'w' })
      const [copy] = again.items
      if (copy === undefined) throw new Error('the redriven item was not leased')
      expect(copy.traceparent).toBe(item.traceparent)
      await client.complete(queue, again.partition, [copy.id])
      const complete = await collector.waitFor(`complete ${queue}`)
      expect(complete).toMatchObject({ status: 0, links: [pick(produce)] })
      expect((await server.call('GET', `/api/v1/letters/${letter.id}`)).status).toBe('RESOLVED')
    })

    it('a batch has one span with the number of its items, and links to the traces of its items', async () => {
      const { queue } = await createQueues(server)
      const [request, own] = [createTrace(), createTrace()]
      const item = {
        payload: { text: 'x' },
        headers: [{ name: 'traceparent', text: own.traceparent }],
      }
      const body = { items: [item, { payload: { text: 'y' } }] }
      const path = `/api/v1/queues/${queue}/items`
      const answer = await server.request('POST', path, body, { traceparent: request.traceparent })
      expect(answer.status).toBe(200)
      const produce = await collector.waitFor(`produce ${queue}`)
      expect(produce.traceId).toBe(request.traceId)
      expect(produce.links).toEqual([{ traceId: own.traceId, spanId: own.spanId }])
      expect(produce.attributes).toMatchObject({ 'messaging.batch.message_count': 2 })
      expect(produce.attributes).not.toHaveProperty('messaging.message.id')

      const { items } = await createClient({ url: server.url }).lease(queue, { clientId: 'w', countMax: 2 })
      expect(items.map(({ traceparent }) => traceparent)).toEqual([
        own.traceparent,
        `00-${request.traceId}-${produce.spanId}-01`,
      ])
    })

    it('an item that dies because its lease ended is reported in its trace', async () => {
      const { queue, dead } = await createQueues(server)
      await server.request('PATCH', `/api/v1/queues/${queue}`, {
        policy: { attempts_max: 1, lease_timeout: '10s' },
      })
      const client = createClient({ url: server.url })
      const { traceId, traceparent } = createTrace()
      await client.produce(queue, 'x', { traceparent })
      await client.lease(queue, { clientId: 'w' })
      await server.setClock({ advance: '11s' })
      const death = await collector.waitFor(`dead-letter ${dead}`)
      expect(death.traceId).toBe(traceId)
    })

    it('without a trace of the client, a produce starts one that the item keeps', async () => {
      const { queue } = await createQueues(server)
      const client = createClient({ url: server.url })
      await client.produce(queue, 'x')
      const { items } = await client.lease(queue, { clientId: 'w' })
      const produce = await collector.waitFor(`produce ${queue}`)
      expect(produce.parentSpanId).toBeUndefined()
      expect(items[0]?.traceparent).toBe(`00-${produce.traceId}-${produce.spanId}-01`)
    })

    it('a trace that the client does not sample has no spans, and its items keep it', async () => {
      const { queue } = await createQueues(server)
      const client = createClient({ url: server.url })
      const { traceId, traceparent } = createTrace()
      await client.produce(queue, 'x', { traceparent: traceparent.replace(/01$/, '00') })
      await client.produce(queue, 'y', createTrace())
      await collector.waitFor(`produce ${queue}`)
      expect(collector.spans().filter((span) => span.traceId === traceId)).toEqual([])
      const { items } = await client.lease(queue, { clientId: 'w', countMax: 2 })
      expect(items[0]?.traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))
    })

    it('a call that fails has a span with the error, and a lease without items has none', async () => {
      const { queue } = await createQueues(server)
      const client = createClient({ url: server.url })
      expect((await client.lease(queue, { clientId: 'w', waitMs: 20 })).items).toEqual([])
      await expect(client.produce(`${queue}-missing`, 'x')).rejects.toThrow(/does not exist/)
      const failed = await collector.waitFor(`produce ${queue}-missing`)
      expect(failed).toMatchObject({ status: 2, attributes: { 'error.type': 'QUEUE_NOT_FOUND' } })
      expect(collector.spans().filter(({ name }) => name === `lease ${queue}`)).toEqual([])
    })

    it('a push is a span in the trace of the broadcast, and the receiver gets its context', async () => {
      const received: Record<string, unknown>[] = []
      const target = createServer((request, response) => {
        received.push(request.headers)
        response.writeHead(received.length === 1 ? 410 : 200).end()
      }).listen(0, '127.0.0.1')
      await new Promise((resolve) => target.once('listening', resolve))
      try {
        const channel = `events-${++created}`
        await createWebhook(
          server,
          channel,
          `http://127.0.0.1:${(target.address() as AddressInfo).port}/hook`,
        )
        const { traceId, spanId, traceparent } = createTrace()
        const answer = await fetch(`${server.url}/channel/${channel}/broadcast`, {
          method: 'POST',
          headers: { ...producerHeaders(channel), traceparent },
          body: '{}',
        })
        expect(answer.status).toBe(201)
        const produce = await collector.waitFor(`produce ${channel}`)
        expect(produce).toMatchObject({ traceId, parentSpanId: spanId })
        const push = await collector.waitFor(`push ${channel}`)
        expect(push).toMatchObject({ traceId, parentSpanId: produce.spanId, kind: 4, status: 2 })
        expect(push.attributes).toMatchObject({ 'http.response.status_code': 410, 'error.type': 'status' })
        expect(received[0]).toMatchObject({ traceparent: `00-${traceId}-${push.spanId}-01` })

        const [letter] = await waitForLetters(server, traceId)
        expect(letter).toMatchObject({ trace_id: traceId, origin: { kind: 'webhook' } })
        await server.call('POST', '/api/v1/letters/redrive', { ids: [letter.id] })
        const second = await collector.waitFor(`push ${channel}`, (span) => span.spanId !== push.spanId)
        expect(second).toMatchObject({ traceId, parentSpanId: produce.spanId, status: 0 })
        expect(received[1]).toMatchObject({ traceparent: `00-${traceId}-${second.spanId}-01` })
      } finally {
        target.closeAllConnections()
        target.close()
      }
    })

    it('an export has exactly the bytes of OTLP for its span', async () => {
      const { queue } = await createQueues(server)
      const { traceId, spanId, traceparent } = createTrace()
      await createClient({ url: server.url }).produce(queue, 'x', { traceparent })
      await collector.waitFor(`produce ${queue}`)
      const found = collector.exports.find(({ body }) => body.includes(`"produce ${queue}"`))
      if (found === undefined) throw new Error('there is no export')
      const text = found.body.toString('utf8')
      // The rest of the text is the resource, which has its own test, and other spans.
      const start = text.lastIndexOf('{"traceId"', text.indexOf(`"produce ${queue}"`))
      const next = text.indexOf(',{"traceId"', start)
      const span = next === -1 ? text.slice(start, text.indexOf(']}]}]}', start)) : text.slice(start, next)
      const masked = span
        .replaceAll(traceId, 'TRACE')
        .replaceAll(spanId, 'PARENT')
        .replaceAll(queue, 'QUEUE')
        .replace(/"spanId":"[0-9a-f]{16}"/, '"spanId":"SPAN"')
        .replaceAll(/TimeUnixNano":"\d{19}"/g, 'TimeUnixNano":"TIME"')
        .replace(/"stringValue":"[\w-]{20,}"/, '"stringValue":"ID"')
      expect(masked).toMatchInlineSnapshot(
        `"{"traceId":"TRACE","spanId":"SPAN","parentSpanId":"PARENT","name":"produce QUEUE","kind":4,"startTimeUnixNano":"TIME","endTimeUnixNano":"TIME","attributes":[{"key":"messaging.system","value":{"stringValue":"redrive"}},{"key":"messaging.operation.name","value":{"stringValue":"produce"}},{"key":"messaging.destination.name","value":{"stringValue":"QUEUE"}},{"key":"messaging.operation.type","value":{"stringValue":"send"}},{"key":"messaging.destination.partition.id","value":{"stringValue":"0"}},{"key":"messaging.message.id","value":{"stringValue":"ID"}}],"droppedAttributesCount":0,"events":[],"droppedEventsCount":0,"status":{"code":0},"links":[],"droppedLinksCount":0,"flags":769}"`,
      )
    })

    it('the collector gets JSON of OTLP with the headers and the resource of the settings', async () => {
      const { queue } = await createQueues(server)
      await createClient({ url: server.url }).produce(queue, 'x')
      await collector.waitFor(`produce ${queue}`)
      const last = collector.exports.at(-1)
      expect(last?.path).toBe('/v1/traces')
      expect(last?.headers).toMatchObject({
        'content-type': 'application/json',
        'api-key': 'abc',
        tenant: 'one',
      })
      expect(collector.resource()).toMatchObject({
        'service.name': 'redrive-test',
        'service.version': version,
        'deployment.environment.name': 'test',
        'telemetry.sdk.language': 'nodejs',
      })
      expect(collector.resource()['service.instance.id']).toMatch(/^[0-9a-f-]{36}$/)
      const metrics = await (await fetch(`${server.url}/metrics`)).text()
      expect(
        Number(/redrive_trace_spans_total\{result="exported"\} (\d+)/.exec(metrics)?.[1]),
      ).toBeGreaterThan(0)
      expect(metrics).toContain('redrive_trace_spans_total{result="dropped"} 0')
    })
  })
}

const producerHeaders = (channel: string) => ({
  'x-broker-channel-token': `${channel}-token`,
  'x-broker-producer-id': 'p',
  'x-broker-producer-token': 'p-token',
})

async function createWebhook(server: StoreServer, channel: string, callbackUrl: string): Promise<void> {
  const put = async (path: string, form: Record<string, string>): Promise<void> => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    await fetch(server.url + path, { method: 'PUT', headers, body: new URLSearchParams(form).toString() })
  }
  await put('/producer/p', { token: 'p-token' })
  await put(`/channel/${channel}`, { token: `${channel}-token` })
  await put(`/channel/${channel}/consumer/c`, { token: 'c-token', callbackUrl })
}

// biome-ignore lint/suspicious/noExplicitAny: tests read the fields that they expect, at any depth
async function waitForLetters(server: StoreServer, traceId: string): Promise<any[]> {
  for (let attempt = 0; attempt < 400; attempt++) {
    const { letters } = await server.call('GET', `/api/v1/letters?trace_id=${traceId}`)
    if (letters.length > 0) return letters
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`no letter with the trace ${traceId} within 10 s`)
}
