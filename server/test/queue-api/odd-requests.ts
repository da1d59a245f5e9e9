/**
 * Makes requests that nobody would send: random bytes, good bodies with bytes changed, good bodies with odd
 * values.
 */
import { type DescMessage, fromJson, type JsonObject, type JsonValue, toBinary } from '@bufbuild/protobuf'
import { contentTypes, type Format, requests } from './queue-client.ts'

export type OddRequest = Readonly<{ path: string; headers: Record<string, string>; body: Buffer }>

/** Ids that were given out, so that some requests are about items that are there. */
export type KnownIds = string[]

const noSuchId = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'

const good: Readonly<Record<string, (id: string, random: () => number) => JsonObject>> = {
  'queue.produce': () => ({
    queue_name: 'q',
    request_timeout: '1m',
    items: [
      { utf8: 'grüße', kind: 'k', enqueue_at: '2030-01-01T00:00:00.5Z' },
      { bytes: 'aGk=', reference: 'r', encoding: 'e' },
    ],
  }),
  'queue.lease': () => ({ queue_name: 'q', request_timeout: '11ms', client_id: 'c', batch_size: 3 }),
  'queue.complete': (id) => ({ queue_name: 'q', partition: 1, request_timeout: '1m', ids: [id, noSuchId] }),
  'queue.retry': (id) => ({
    queue_name: 'q',
    items: [{ id, retry_at: '2030-01-01T00:00:00Z', dead: true }],
  }),
  'queue.clear': () => ({ queue_name: 'q', queue: true, scheduled: true, destructive: true }),
  'queue.reload': () => ({ queue_name: 'q' }),
  'queue.stats': () => ({ queue_name: 'q' }),
  'queues.create': (_, random) => ({
    // The one that all the others are about may have been deleted.
    queue_name: random() < 0.5 ? 'q' : 'n',
    lease_timeout: '1m',
    expire_timeout: '1h',
    requested_partitions: 2,
  }),
  'queues.update': () => ({ queue_name: 'q', dead_queue: 'd', max_attempts: 2, lease_timeout: '2m' }),
  'queues.list': () => ({ pivot: 'q', limit: 3 }),
  'queues.info': () => ({ queue_name: 'q' }),
  'queues.delete': () => ({ queue_name: 'n', force: true }),
  'storage/items.list': (id) => ({ queue_name: 'q', pivot: id, limit: 5 }),
  'storage/scheduled.list': () => ({ queue_name: 'q', limit: 5 }),
  'storage/items.import': () => ({
    queue_name: 'q',
    items: [
      { source_id: 's', is_leased: true, lease_deadline: '2030-01-01T00:00:00Z', payload: 'aGk=' },
      { attempts: 3, max_attempts: 5, expire_deadline: '2030-01-01T00:00:00Z', kind: 'k' },
    ],
  }),
  'storage/items.delete': (id) => ({ queue_name: 'q', ids: [id] }),
}
const methods = Object.keys(good)

/** Each is of a legal type somewhere, and a boundary, beyond one, or a trap. */
const oddValues: readonly JsonValue[] = [
  ...[
    '',
    ' ',
    '~',
    'q',
    'd',
    'n',
    'nowhere',
    'a\0b',
    '\u0085',
    '\ufeff',
    '👍'.repeat(200),
    'x'.repeat(3_000),
    '__proto__',
  ],
  ...['0', '0s', '1ns', '10ms', '15m', '15m0.1s', '-1m', '99999999h', '1e9s', '1m1'],
  ...[
    '0001-01-01T00:00:00Z',
    '1969-12-31T23:59:59Z',
    '9999-12-31T23:59:59.999999999Z',
    '2030-01-01T00:00:00+01:00',
  ],
  ...[
    'a',
    'aWgEPTl1tmebfsQzFP4bxwgy80V',
    'zzzzzzzzzzzzzzzzzzzzzzzzzzz',
    '000000000000000000000000000',
    '!'.repeat(27),
  ],
  ...[0, 1, -1, 1.5, 1_000, 1_001, 65_536, 65_537, 2_147_483_647, -2_147_483_648, 2_147_483_648, 1e99],
  ...[null, true, false],
  [],
  {},
  [{}],
  [null],
  Array.from({ length: 1_001 }, () => ({})),
  Array.from({ length: 20 }, () => noSuchId),
]

export function oddRequest(random: () => number, ids: KnownIds): OddRequest {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const method = pick(methods)
  const format = pick<Format>(['json', 'protobuf'])
  const headers: Record<string, string> = { 'content-type': contentTypes[format] }
  if (random() < 0.3) headers.accept = pick(['application/protobuf', '*/*', 'application/json;q=1'])
  if (random() < 0.02) headers.accept = 'text/html'
  if (random() < 0.05) headers['content-type'] = pick(['', 'text/plain', 'application/*', ';;', 'a/b/c', 'é'])
  if (random() < 0.1) {
    const errors = [
      '{}',
      '{',
      '{"stack":""}',
      '[]',
      'null',
      '{"reason":"\\u0000\\ud800"}',
      '{"error_class":"é"}',
    ]
    headers['x-redrive-error'] = pick(errors)
  }
  const make = good[method] as (id: string, random: () => number) => JsonObject
  const body = make(ids.length > 0 ? pick(ids) : noSuchId, random)
  const path = `/v1/${random() < 0.02 ? 'nothing' : method}`
  if (random() < 0.05) return { path, headers, body: randomBytes(random, 64) }
  if (random() < 0.5) {
    for (let changes = Math.floor(random() * 3); changes > 0; changes--) changeValue(body, random)
    return { path, headers, body: encode(method, body, format) }
  }
  let bytes = encode(method, body, format)
  for (let changes = Math.floor(random() * 4); changes > 0; changes--) bytes = changeBytes(bytes, random)
  return { path, headers, body: bytes }
}

function encode(method: string, body: JsonObject, format: Format): Buffer {
  if (format === 'json') return Buffer.from(JSON.stringify(body))
  const [desc] = requests[method] as readonly [DescMessage, DescMessage]
  try {
    return Buffer.from(toBinary(desc, fromJson(desc, body)))
  } catch {
    // Values that protobuf cannot express are sent as JSON with the wrong content type.
    return Buffer.from(JSON.stringify(body))
  }
}

/** One field somewhere in the body becomes something else, or goes. */
function changeValue(body: JsonObject, random: () => number): void {
  let object = body
  for (;;) {
    const keys = Object.keys(object)
    const key = keys[Math.floor(random() * keys.length)]
    if (key === undefined) return
    const list = object[key]
    const element = Array.isArray(list) ? list[Math.floor(random() * list.length)] : undefined
    if (isObject(element) && random() < 0.7) {
      object = element
      continue
    }
    if (random() < 0.1) delete object[key]
    else object[key] = structuredClone(oddValues[Math.floor(random() * oddValues.length)] as JsonValue)
    return
  }
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function changeBytes(body: Buffer, random: () => number): Buffer {
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
