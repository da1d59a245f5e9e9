/** A collector that is away, slow or refuses, and how many traces are sampled. */
import { createServer } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { Secret } from '../../src/config/secrets/secret.ts'
import { startServer } from '../../src/server.ts'
import { type OtlpReceiver, startOtlpReceiver } from '../http/otlp-receiver.ts'
import { createReadableLog, startTestServer, testSettings } from '../http/test-server.ts'

const receivers: OtlpReceiver[] = []
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()))
})

async function startReceiver(port?: number): Promise<OtlpReceiver> {
  const receiver = await startOtlpReceiver(port)
  receivers.push(receiver)
  return receiver
}

async function startTraced(url: string, over: object = {}) {
  const server = await startTestServer({
    'tracing.otlp_endpoint': url,
    'tracing.export_interval': 20,
    ...over,
  })
  const client = createClient({ url: server.url })
  await client.createQueue({ name: 'orders' })
  return { ...server, client }
}

async function readSpanTotal(url: string, result: 'exported' | 'dropped'): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(new RegExp(`redrive_trace_spans_total\\{result="${result}"\\} (\\d+)`).exec(text)?.[1])
}

async function until(isDone: () => Promise<boolean> | boolean): Promise<void> {
  for (let attempt = 0; attempt < 800; attempt++) {
    if (await isDone()) return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error('it did not happen within 20 s')
}

it('while the collector refuses, work goes on, spans are dropped and counted, and one line is logged', async () => {
  const collector = await startReceiver()
  collector.answerWith(400)
  const { url, client, lines } = await startTraced(collector.url)
  for (let at = 0; at < 5; at++) {
    await client.produce('orders', `${at}`)
    const dropped = at + 1
    await until(async () => (await readSpanTotal(url, 'dropped')) >= dropped)
  }
  const isAboutSpans = ({ msg }: { msg: string }) => msg.includes('spans')
  expect(lines.filter(isAboutSpans).map(({ level, msg }) => [level, msg])).toEqual([
    ['warn', 'spans cannot be exported; they are dropped until it works again'],
  ])

  collector.answerWith(200)
  await client.produce('orders', 'last')
  await collector.waitFor('produce orders')
  await until(() => lines.filter(isAboutSpans).length === 2)
  expect(lines.filter(isAboutSpans)[1]).toMatchObject({ msg: 'spans are exported again' })
  expect((await client.lease('orders', { clientId: 'w', countMax: 10 })).items).toHaveLength(6)
})

it('while the collector cannot be reached, calls succeed and the server still stops', async () => {
  const { log } = createReadableLog()
  const settings = { 'tracing.otlp_endpoint': 'http://127.0.0.1:9', 'tracing.export_interval': 20 }
  const server = await startServer({ settings: testSettings(settings), store: { kind: 'memory' }, log })
  const client = createClient({ url: server.url })
  await client.createQueue({ name: 'orders' })
  await client.produce('orders', 'x')
  expect((await client.lease('orders', { clientId: 'w' })).items).toHaveLength(1)
  await server.stop(0)
})

it('a collector that never answers fills a bounded queue, and further spans are dropped', async () => {
  const sockets: { destroy(): void }[] = []
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => {})))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as { port: number }
  try {
    const { url, client } = await startTraced(`http://127.0.0.1:${port}`, { 'tracing.queue_max': 10 })
    for (let at = 0; at < 30; at++) await client.produce('orders', `${at}`)
    expect(await readSpanTotal(url, 'dropped')).toBe(20)
    expect(await readSpanTotal(url, 'exported')).toBe(0)
  } finally {
    for (const socket of sockets) socket.destroy()
    silent.close()
  }
})

it('with a sample ratio of 0, only traces that a client sampled have spans', async () => {
  const collector = await startReceiver()
  const { client } = await startTraced(collector.url, { 'tracing.sample_ratio': 0 })
  await client.produce('orders', 'unsampled')
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  await client.produce('orders', 'sampled', { traceparent })
  await collector.waitFor('produce orders')
  expect(collector.spans().map(({ traceId }) => traceId)).toEqual([traceparent.slice(3, 35)])
  const { items } = await client.lease('orders', { clientId: 'w', countMax: 2 })
  expect(items.map((item) => item.traceparent?.slice(0, 36) ?? null)).toEqual([
    null,
    traceparent.slice(0, 36),
  ])
})

it('a sample ratio between 0 and 1 decides by the trace id, so that all servers agree', async () => {
  const collector = await startReceiver()
  const { client } = await startTraced(collector.url, { 'tracing.sample_ratio': 0.5 })
  for (let at = 0; at < 60; at++) await client.produce('orders', `${at}`)
  // The last produce is sampled, so it shows that all others were exported.
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  await client.produce('orders', 'last', { traceparent })
  await collector.waitFor('produce orders', ({ traceId }) => traceId === traceparent.slice(3, 35))
  const sampled = collector.spans().length - 1
  expect(sampled).toBeGreaterThan(0)
  expect(sampled).toBeLessThan(60)
  const { items } = await client.lease('orders', { clientId: 'w', countMax: 61 })
  expect(items.filter((item) => item.traceparent !== null)).toHaveLength(sampled + 1)
})

it('the headers for the collector are read again for each export, and must be headers', async () => {
  const collector = await startReceiver()
  let key = 'first'
  const { log } = createReadableLog()
  const settings = testSettings({
    'tracing.otlp_endpoint': `${collector.url}/v1/traces/`,
    'tracing.otlp_headers': new Secret('vault:traces#key'),
    'tracing.export_interval': 20,
  })
  const options = { settings, store: { kind: 'memory' }, log } as const
  const readSecret = async () => new Secret(`authorization=Bearer ${key}`)
  const server = await startServer({ ...options, readSecret })
  try {
    const client = createClient({ url: server.url })
    await client.createQueue({ name: 'orders' })
    await client.produce('orders', 'x')
    await until(() => collector.exports.length > 0)
    key = 'second'
    await client.produce('orders', 'y')
    await until(() => collector.spans().filter(({ name }) => name === 'produce orders').length === 2)
    expect(collector.exports[0]).toMatchObject({
      path: '/v1/traces',
      headers: { authorization: 'Bearer first' },
    })
    expect(collector.exports.at(-1)?.headers.authorization).toBe('Bearer second')
  } finally {
    await server.stop(0)
  }
  await expect(startServer({ ...options, readSecret: async () => new Secret('no headers') })).rejects.toThrow(
    'tracing.otlp_headers is not a list of headers',
  )
})

it('without a collector there is no metric of spans', async () => {
  const { url } = await startTestServer()
  expect(await (await fetch(`${url}/metrics`)).text()).not.toContain('redrive_trace_spans')
})
