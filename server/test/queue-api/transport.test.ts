import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  QueueInfoSchema,
  QueuesListRequestSchema,
  ReplySchema,
} from '../../src/api/queue/generated/redrive/queue/v1/queue_pb.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import { openStorage } from '../../src/storage/open-storage.ts'
import { createSystemClock } from '../../src/system-clock.ts'
import { connectRaw } from '../http/raw-connection.ts'
import { startTestApi } from '../http/test-api.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'
import { type Body, contentTypes, createQueueClient } from './queue-client.ts'

let server: RunningServer
beforeAll(async () => {
  const { log } = createReadableLog()
  server = await startServer({ settings: testSettings(), store: { kind: 'memory' }, log })
  await post('queues.create', {
    queue_name: 'orders',
    lease_timeout: '1m',
    expire_timeout: '1h',
    requested_partitions: 1,
  })
})
afterAll(() => server.stop(0))

async function post(
  method: string,
  body: object | string | Uint8Array,
  headers: Record<string, string> = {},
) {
  const response = await fetch(`${server.url}/v1/${method}`, {
    method: 'POST',
    headers: { 'content-type': contentTypes.json, ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? (body as never) : JSON.stringify(body),
  })
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

/** A request with exactly these headers: what sends them usually adds some of its own. */
async function raw(headers: readonly string[], body: string | Uint8Array = '{}', method = 'queues.list') {
  const connection = await connectRaw(Number(new URL(server.url).port))
  const bytes = Buffer.from(body)
  const head = [
    `POST /v1/${method} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    `Content-Length: ${bytes.length}`,
    ...headers,
  ]
  connection.write(`${head.join('\r\n')}\r\n\r\n`)
  connection.socket.write(bytes)
  const text = await connection.readToEnd()
  const [, statusLine = '', rest = ''] = /^(.*?)\r\n([\s\S]*)$/.exec(text) ?? []
  return { statusLine, rest, isJson: /content-type: application\/json\r\n/i.test(rest) }
}

describe('the format of a request', () => {
  it.each([
    [[]],
    [['Content-Type: application/json']],
    [['Content-Type: APPLICATION/Json ; charset=utf-8']],
    [['Content-Type: application/json, text/plain']],
    [['Content-Type: application/*']],
    [['Content-Type: */*']],
    [['Content-Type:']],
  ])('a request with headers %j is read as JSON', async (headers) => {
    expect((await raw(headers)).statusLine).toBe('HTTP/1.1 200 OK')
  })

  it.each(['application/protobuf', 'Application/Protobuf; x=y', 'application/protobuf, application/json'])(
    'a request with Content-Type %s is read as protobuf',
    async (contentType) => {
      // Limit 1 as a varint; not JSON at all.
      const { statusLine } = await raw([`Content-Type: ${contentType}`], new Uint8Array([0x18, 0x01]))
      expect(statusLine).toBe('HTTP/1.1 200 OK')
    },
  )

  it.each(['text/plain', 'application/x-protobuf', 'nonsense', 'json'])(
    'Content-Type %s is refused with 455',
    async (contentType) => {
      const { statusLine, isJson } = await raw([`Content-Type: ${contentType}`])
      expect([statusLine, isJson]).toEqual(['HTTP/1.1 455 Client Content Error', true])
    },
  )
})

describe('the format of an answer', () => {
  it.each([[[]], [['Accept: application/json']], [['Accept: */*']], [['Accept: application/*;q=0.1']]])(
    'an answer is JSON for %j, independently of the request',
    async (headers) => {
      const answer = await raw([...headers, 'Content-Type: application/protobuf'], new Uint8Array())
      expect([answer.statusLine, answer.isJson]).toEqual(['HTTP/1.1 200 OK', true])
    },
  )

  it('an answer is protobuf if the client accepts it', async () => {
    const { response, bytes } = await post(
      'queues.info',
      { queue_name: 'orders' },
      { accept: 'APPLICATION/PROTOBUF, */*' },
    )
    expect(response.headers.get('content-type')).toBe('application/protobuf')
    expect(fromBinary(QueueInfoSchema, bytes)).toMatchObject({ queueName: 'orders', expireTimeout: '1h0m0s' })
  })

  it('an error is protobuf if the client accepts it', async () => {
    const { response, bytes } = await post('queues.info', {}, { accept: 'application/protobuf' })
    expect(response.status).toBe(400)
    expect(toJson(ReplySchema, fromBinary(ReplySchema, bytes), { useProtoFieldName: true })).toEqual({
      code: 400,
      code_text: 'Bad Request',
      message: 'queue name is invalid; queue name cannot be empty',
    })
  })

  it('an unsupported Accept is refused with 455 in JSON, and the call is not executed', async () => {
    const body = {
      queue_name: 'unwanted',
      lease_timeout: '1m',
      expire_timeout: '1h',
      requested_partitions: 1,
    }
    const { response, bytes } = await post('queues.create', body, { accept: 'text/html' })
    expect(response.status).toBe(455)
    expect(JSON.parse(bytes.toString())).toMatchObject({ code: 455, code_text: 'Client Content Error' })
    expect((await post('queues.info', { queue_name: 'unwanted' })).response.status).toBe(400)
  })

  it('an answer has its plain content type and nosniff', async () => {
    const { response, bytes } = await post('queue.reload', { queue_name: 'orders' })
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(bytes.toString()).toBe('{"code":200}')
  })
})

describe('a JSON body', () => {
  it.each([
    ['an empty one', ''],
    ['one that is no JSON', '{"queue_name":'],
    ['no object', '[]'],
    ['nothing', 'null'],
    ['an unknown field', '{"queue_name":"orders","colour":"red"}'],
    ['a wrong type', '{"queue_name":7}'],
    ['a number that is none', '{"limit":"many"}'],
    ['a number that does not fit', '{"limit":2147483648}'],
    ['a broken surrogate', '{"pivot":"\\ud800"}'],
    ['both names of one field', '{"queue_name":"orders","queueName":"orders"}'],
  ])('a JSON body with %s is refused with 455', async (_what, body) => {
    const method = body.includes('limit') || body.includes('pivot') ? 'queues.list' : 'queues.info'
    const { response, bytes } = await post(method, body)
    expect(response.status).toBe(455)
    expect(response.statusText).toBe('Client Content Error')
    expect(JSON.parse(bytes.toString())).toMatchObject({ code: 455, code_text: 'Client Content Error' })
  })

  it.each(['hello world', 'aGk=\n', 'a', 'YQ=', 'aG k', 'é'])(
    'payload bytes %j are not base64 and are refused with 455',
    async (text) => {
      const target = { queue_name: 'orders', request_timeout: '1m', partition: 0 }
      const bodies = [
        ['queue.produce', { ...target, items: [{}, { bytes: text }] }, 'items[1].bytes is not base64'],
        ['queue.produce', { ...target, items: [{ bytes: text, enqueue_at: null }] }, 'is not base64'],
        ['storage/items.import', { queue_name: 'orders', items: [{ payload: text }] }, 'items[0].payload'],
      ] as const
      for (const [method, body, message] of bodies) {
        const { response, bytes } = await post(method, JSON.stringify(body))
        expect(response.status).toBe(455)
        expect(JSON.parse(bytes.toString()).message).toContain(message)
      }
    },
  )

  it('a JSON body that is not UTF-8 is refused with 455', async () => {
    const body = Buffer.from('{"queue_name":"\xff"}', 'latin1')
    expect((await post('queues.info', body)).response.status).toBe(455)
  })

  it.each([
    ['bytes that are not base64', { bytes: '!!!!' }],
    ['bytes of an impossible length', { bytes: 'a' }],
    ['an unknown field in an item', { payload: 'aGk=' }],
    ['a wrong type in an item', { utf8: 1 }],
    ['a time that is none', { enqueue_at: 'tomorrow' }],
  ])('a JSON item with %s is refused with 455', async (_what, item) => {
    const body = { queue_name: 'orders', request_timeout: '1m', items: [item] }
    expect((await post('queue.produce', body)).response.status).toBe(455)
  })

  it('a JSON body may use lowerCamel names', async () => {
    const { bytes } = await post('queues.info', { queueName: 'orders' })
    expect(JSON.parse(bytes.toString()).queue_name).toBe('orders')
    const produced = await post('queue.produce', {
      queueName: 'orders',
      requestTimeout: '1m',
      items: [{ utf8: 'x', enqueueAt: '2020-01-01T00:00:00Z' }],
    })
    expect(produced.response.status).toBe(200)
  })
})

describe('a protobuf body', () => {
  const headers = { 'content-type': 'application/protobuf' }

  it('an empty protobuf body is an empty message', async () => {
    expect((await post('queues.list', new Uint8Array(), headers)).response.status).toBe(200)
    const { bytes } = await post('queues.info', new Uint8Array(), headers)
    expect(JSON.parse(bytes.toString()).message).toBe('queue name is invalid; queue name cannot be empty')
    const produced = await post('queue.produce', new Uint8Array(), headers)
    expect(JSON.parse(produced.bytes.toString()).message).toBe(
      'queue name is invalid; queue name cannot be empty',
    )
  })

  it('unknown fields of a protobuf body are ignored', async () => {
    const known = toBinary(QueuesListRequestSchema, create(QueuesListRequestSchema, { limit: 1 }))
    const { response } = await post(
      'queues.list',
      Buffer.concat([Buffer.from([0xf8, 0x07, 0x01]), known]),
      headers,
    )
    expect(response.status).toBe(200)
  })

  it('a protobuf body may have negative numbers, which have ten bytes', async () => {
    const minusOne = [0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
    const { bytes } = await post('queues.list', new Uint8Array(minusOne), headers)
    expect(JSON.parse(bytes.toString()).message).toBe('limit is invalid; limit cannot be negative')
  })

  it.each([
    ['queues.info', [0x0a, 0x7f]],
    ['queues.info', [0x0a, 0x01, 0xff]],
    ['queue.produce', [0x0a, 0x7f]],
    ['queue.produce', [0x1a, 0x02, 0x2a, 0x7f]],
    ['queue.produce', [0x0a, 0x01, 0xff]],
  ])('a broken protobuf body of %s is refused with 455 (%j)', async (method, bytes) => {
    expect((await post(method, new Uint8Array(bytes), headers)).response.status).toBe(455)
  })
})

describe('requests that are not calls', () => {
  it.each(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('method %s is refused with 400', async (method) => {
    for (const path of ['/v1/queue.lease', '/v1/nothing']) {
      const response = await fetch(`${server.url}${path}`, { method })
      expect(response.status).toBe(400)
      expect(await response.json()).toEqual({
        code: 400,
        code_text: 'Bad Request',
        message: `http method '${method}' not allowed; only POST`,
      })
    }
  })

  it('an unknown path is refused with 501', async () => {
    const { response, bytes } = await post('queue.nothing', {})
    expect(response.status).toBe(501)
    expect(JSON.parse(bytes.toString())).toEqual({
      code: 501,
      code_text: 'Not Implemented',
      message: 'no such method; /v1/queue.nothing',
    })
  })

  it.each([
    ['queue.produce', 5_000_000, '5.0MB'],
    ['queue.lease', 512, '512B'],
    ['queue.complete', 256_000, '250.0KiB'],
    ['queue.retry', 256_000, '250.0KiB'],
    ['queue.stats', 512, '512B'],
    ['queue.clear', 512, '512B'],
    ['queue.reload', 512, '512B'],
    ['queues.create', 256_000, '250.0KiB'],
    ['queues.update', 512_000, '500.0KiB'],
    ['queues.list', 256_000, '250.0KiB'],
    ['queues.info', 256_000, '250.0KiB'],
    ['queues.delete', 256_000, '250.0KiB'],
    ['storage/items.list', 256_000, '250.0KiB'],
    ['storage/scheduled.list', 256_000, '250.0KiB'],
    ['storage/items.delete', 256_000, '250.0KiB'],
    ['storage/items.import', 64_000_000, '61.0MiB'],
  ])('a body of %s above %i bytes is refused with the text of its limit', async (method, bytesMax, text) => {
    const fits = await post(method, `${' '.repeat(bytesMax - 2)}{}`)
    expect(JSON.parse(fits.bytes.toString()).message ?? '').not.toMatch('request body exceeds')
    const { response, bytes } = await post(method, `${' '.repeat(bytesMax - 1)}{}`)
    expect(response.status).toBe(400)
    expect(JSON.parse(bytes.toString()).message).toBe(`request body exceeds ${text} limit`)
  })
})

describe('the limits of a server', () => {
  it('the limits of the settings apply', async () => {
    const { log } = createReadableLog()
    const bounds = {
      'queue.produce_items_max': 1,
      'queue.lease_items_max': 2,
      'queue.complete_items_max': 3,
      'http.body_bytes_max': 100_000,
    }
    const small = await startServer({ settings: testSettings(bounds), store: { kind: 'memory' }, log })
    const { call, callRefused } = createQueueClient(() => small.url, 'json')
    try {
      const place = { queue_name: 'q', request_timeout: '1m' }
      const timeouts = { lease_timeout: '1m', expire_timeout: '1h' }
      await call('queues.create', { queue_name: 'q', requested_partitions: 1, ...timeouts })
      expect(await callRefused('queue.produce', { ...place, items: [{}, {}] })).toBe(
        'items is invalid; max_produce_batch_size is 1 but received 2',
      )
      expect(await callRefused('queue.lease', { ...place, client_id: 'w', batch_size: 3 })).toBe(
        'invalid batch size; max_lease_batch_size is 2, but 3 was requested',
      )
      expect(await callRefused('queue.complete', { ...place, ids: ['', '', '', ''] })).toBe(
        'ids is invalid; max_complete_batch_size is 3 but received 4',
      )
      expect(await callRefused('queue.produce', { ...place, items: [{ utf8: 'x'.repeat(100_000) }] })).toBe(
        'request body exceeds 97.7KiB limit',
      )
    } finally {
      await small.stop(0)
    }
  })

  it('a body with millions of empty items does not become millions of objects', async () => {
    const empties = Buffer.alloc(4_000_000)
    for (let at = 0; at < empties.length; at += 2) empties[at] = 0x1a
    const headers = { 'content-type': 'application/protobuf' }
    const place = Buffer.from([0x0a, 0x06, ...Buffer.from('orders')])
    const imported = await post('storage/items.import', Buffer.concat([place, empties]), headers)
    expect(JSON.parse(imported.bytes.toString()).message).toBe(
      'items is invalid; cannot be more than 100000 in one request',
    )
    const timeout = Buffer.from([0x12, 0x02, ...Buffer.from('1m')])
    const produced = await post('queue.produce', Buffer.concat([place, timeout, empties]), headers)
    expect(JSON.parse(produced.bytes.toString()).message).toBe(
      'items is invalid; max_produce_batch_size is 1000 but received 2000000',
    )
    const json = await post('storage/items.import', `{"items":[${'{},'.repeat(1_000_001)}{}]}`)
    expect(json.response.status).toBe(400)
  })
})

describe('the connection', () => {
  it('a connection stays open between calls for longer than clients reuse it', async () => {
    const { response } = await post('queue.reload', { queue_name: 'orders' })
    expect(response.headers.get('connection')).toBe('keep-alive')
    const [, seconds] = /timeout=(\d+)/.exec(response.headers.get('keep-alive') ?? '') ?? []
    expect(Number(seconds)).toBeGreaterThanOrEqual(75)
  })
})

describe('errors of a server', () => {
  it('a call without a store is answered with 454', async () => {
    const { url } = await startTestApi()
    const response = await fetch(`${url}/v1/queue.complete`, { method: 'POST', body: Buffer.from('{}') })
    expect([response.status, response.statusText]).toEqual([454, 'Retry Request'])
    expect(await response.json()).toEqual({
      code: 454,
      code_text: 'Retry Request',
      message: 'internal error, try your request again',
    })
  })

  it('an unexpected error is answered with 500 and without internal detail', async () => {
    const { url, lines } = await startTestApi({
      engine: () => {
        throw new TypeError('secret')
      },
    })
    const response = await fetch(`${url}/v1/queues.info`, { method: 'POST', body: Buffer.from('{}') })
    expect([response.status, response.statusText]).toEqual([500, 'Internal Service Error'])
    expect(await response.json()).toEqual({
      code: 500,
      code_text: 'Internal Service Error',
      message: 'Internal Error',
    })
    expect(lines.some((line) => JSON.stringify(line).includes('secret'))).toBe(true)
  })

  it('a complete or retry that the store could not execute is answered with 454 and logged', async () => {
    const storage = await openStorage({ kind: 'memory' })
    const clock = createSystemClock()
    const engine = createEngine(storage, { clock })
    await engine.createQueue({ name: 'q' })
    const write = () => Promise.reject(new Error('disk on fire'))
    const burning = createEngine(Object.assign(Object.create(storage), { write }), {
      clock,
      isTicking: false,
    })
    const { url, lines } = await startTestApi({ engine: () => burning })
    const id = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'
    for (const [method, body] of [
      ['queue.complete', { queue_name: 'q', request_timeout: '1m', ids: [id] }],
      ['queue.retry', { queue_name: 'q', items: [{ id }] }],
    ] as const) {
      const response = await fetch(`${url}/v1/${method}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      expect(response.status).toBe(454)
      expect(await response.json()).toMatchObject({ message: 'internal error, try your request again' })
    }
    expect(lines.filter((line) => JSON.stringify(line).includes('disk on fire'))).toHaveLength(2)
    await engine.close()
    await storage.close()
  })

  it('calls during a shutdown, and leases that wait in a queue, are answered with 453', async () => {
    const { log } = createReadableLog()
    const stopping = await startServer({ settings: testSettings(), store: { kind: 'memory' }, log })
    const call = (method: string, body: object) =>
      fetch(`${stopping.url}/v1/${method}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const queue = { queue_name: 'q', lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }
    await call('queues.create', queue)
    const waiting = call('queue.lease', {
      queue_name: 'q',
      batch_size: 1,
      client_id: 'w',
      request_timeout: '10m',
    })
    const idle = await connectRaw(Number(new URL(stopping.url).port))
    const leaseWaiting = async () => {
      const stats = (await (await call('queue.stats', { queue_name: 'q' })).json()) as Body
      return stats.logicalQueues[0].lease_waiting
    }
    await expect.poll(leaseWaiting).toBe(1)
    // Begun but not finished: it keeps the server from ending before the test has asked.
    idle.write('POST /v1/queues.list HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n')
    const stopped = stopping.stop(2_000)
    const response = await waiting
    expect(response.status).toBe(453)
    expect(await response.json()).toEqual({
      code: 453,
      code_text: 'Request Failed',
      message: 'queue is shutting down',
    })
    idle.write('{}')
    await stopped
  })
})
