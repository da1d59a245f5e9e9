/**
 * Requests that nobody would send: random ones, and good ones with bytes changed. Whatever comes, the
 * answer is one that the contract knows and never 500, and the server serves on.
 *
 * REDRIVE_FUZZ_REQUESTS sets how many (100,000 before a release); REDRIVE_FUZZ_SEED repeats a run.
 */
import { Agent, request } from 'node:http'
import { type DescMessage, fromJson, type JsonObject, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { createPlace, needsOf } from '../conformance/stores.ts'
import { startTestServer } from '../http/running.ts'
import { seededRandom } from '../make.ts'
import { contentTypes, type Format, requests } from './speak.ts'

const count = Number(process.env.REDRIVE_FUZZ_REQUESTS ?? 4_000)
const seed = Number(process.env.REDRIVE_FUZZ_SEED ?? Date.now() % 1_000_000)
const known = new Set([200, 400, 453, 454, 455, 501])
const id = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'

const good: Readonly<Record<string, JsonObject>> = {
  'queue.produce': {
    queue_name: 'q',
    request_timeout: '1m',
    items: [
      { utf8: 'grüße', kind: 'k', enqueue_at: '2030-01-01T00:00:00.5Z' },
      { bytes: 'aGk=', reference: 'r' },
    ],
  },
  'queue.lease': { queue_name: 'q', request_timeout: '11ms', client_id: 'c', batch_size: 3 },
  'queue.complete': { queue_name: 'q', partition: 1, request_timeout: '1m', ids: [id, id] },
  'queue.retry': { queue_name: 'q', items: [{ id, retry_at: '2030-01-01T00:00:00Z', dead: true }] },
  'queue.clear': { queue_name: 'q', queue: true, destructive: true },
  'queue.reload': { queue_name: 'q' },
  'queue.stats': { queue_name: 'q' },
  'queues.create': { queue_name: 'n', lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 },
  'queues.update': { queue_name: 'q', dead_queue: 'd', max_attempts: 2, lease_timeout: '2m' },
  'queues.list': { pivot: 'q', limit: 3 },
  'queues.info': { queue_name: 'q' },
  'queues.delete': { queue_name: 'n', force: true },
  'storage/items.list': { queue_name: 'q', pivot: id, limit: 5 },
  'storage/scheduled.list': { queue_name: 'q', limit: 5 },
  'storage/items.import': {
    queue_name: 'q',
    items: [{ source_id: 's', is_leased: true, lease_deadline: '2030-01-01T00:00:00Z', payload: 'aGk=' }],
  },
  'storage/items.delete': { queue_name: 'q', ids: [id] },
}
const methods = Object.keys(good)

async function fuzz(url: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  const send = (path: string, headers: Record<string, string>, body: Uint8Array): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request(`${url}${path}`, { method: 'POST', agent, headers }, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
      })
      sent.on('error', reject)
      sent.end(body)
    })
  for (const name of ['q', 'd']) {
    const spec = { lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 2 }
    await send('/v1/queues.create', {}, Buffer.from(JSON.stringify({ queue_name: name, ...spec })))
  }

  const random = seededRandom(seed)
  const statuses = new Map<number, number>()
  const worker = async (share: number): Promise<void> => {
    for (let sent = 0; sent < share; sent++) {
      const odd = oddRequest(random)
      const status = await send(odd.path, odd.headers, odd.body)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (!known.has(status)) {
        throw new Error(
          `${status} for ${odd.path} ${JSON.stringify(odd.headers)} ${odd.body.toString('base64')}`,
        )
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: 8 }, () => worker(Math.ceil(count / 8))))
    expect(statuses.get(200) ?? 0).toBeGreaterThan(0)
    expect(await send('/v1/queues.list', {}, Buffer.from('{}'))).toBe(200)
  } finally {
    agent.destroy()
  }
}

describe.each(['SQLite memory', 'PostgreSQL'] as const)('a server on %s', (store) => {
  const name = `knows an answer to ${count} odd requests (seed ${seed})`
  it(name, { ...needsOf(store), timeout: 1_200_000 }, async () => {
    const place = await createPlace(store)
    try {
      const server = await startTestServer({}, place.target)
      await fuzz(server.url)
      await server.stop(0)
    } finally {
      await place.drop()
    }
  })
})

function oddRequest(random: () => number): { path: string; headers: Record<string, string>; body: Buffer } {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const method = pick(methods)
  const format = pick<Format>(['json', 'protobuf'])
  const headers: Record<string, string> = { 'content-type': contentTypes[format] }
  if (random() < 0.5)
    headers.accept = pick(['application/protobuf', '*/*', 'text/html', 'application/json;q=1'])
  if (random() < 0.1) headers['content-type'] = pick(['', 'text/plain', 'application/*', ';;', 'a/b/c', 'é'])
  if (random() < 0.1) headers['x-redrive-error'] = pick(['{}', '{', '{"stack":""}', '[]', 'null'])
  let body = random() < 0.1 ? randomBytes(random, 64) : encode(method, format)
  for (let changes = Math.floor(random() * 4); changes > 0; changes--) body = change(body, random)
  return { path: `/v1/${random() < 0.02 ? 'nothing' : method}`, headers, body }
}

function encode(method: string, format: Format): Buffer {
  const body = good[method] as JsonObject
  if (format === 'json') return Buffer.from(JSON.stringify(body))
  const [desc] = requests[method] as readonly [DescMessage, DescMessage]
  return Buffer.from(toBinary(desc, fromJson(desc, body)))
}

function change(body: Buffer, random: () => number): Buffer {
  const at = Math.floor(random() * (body.length + 1))
  const to = Math.min(at + Math.floor(random() * 8), body.length)
  switch (Math.floor(random() * 5)) {
    case 0: {
      const copy = Buffer.from(body)
      if (at < copy.length) copy[at] = Math.floor(random() * 256)
      return copy
    }
    case 1:
      return body.subarray(0, at)
    case 2:
      return Buffer.concat([body.subarray(0, at), body.subarray(to)])
    case 3:
      return Buffer.concat([body.subarray(0, to), body.subarray(at)])
    default: {
      const words = [
        'null',
        '-1',
        '1e99',
        '"\\u0000"',
        '"\\ud800"',
        '[]',
        '{}',
        '99999999999',
        '"0ns"',
        '~',
        ' ',
      ]
      const word = words[Math.floor(random() * words.length)] as string
      const inserted = random() < 0.5 ? Buffer.from(word) : randomBytes(random, 6)
      return Buffer.concat([body.subarray(0, at), inserted, body.subarray(at)])
    }
  }
}

function randomBytes(random: () => number, lengthMax: number): Buffer {
  return Buffer.from(
    Array.from({ length: Math.floor(random() * lengthMax) }, () => Math.floor(random() * 256)),
  )
}
