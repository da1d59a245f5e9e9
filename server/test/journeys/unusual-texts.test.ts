import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunningServer } from '../../src/server.ts'
import { startServer } from '../../src/server.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { createReadableLog, testSettings } from '../http/test-server.ts'

/** JSON writes these characters as escapes, so they reach the server unchanged. */
const unusualTexts = [
  ['a NUL character', 'a\0b'],
  ['an unpaired surrogate', 'a\ud800b'],
  ['noncharacters and a control character', 'a\ufffe\uffff\u0001b'],
] as const

const spec = { lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }

type Answer = Readonly<{ status: number; body: Record<string, never> }>

for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
  describe(`an unusual text from a client (${store})`, needsOf(store), () => {
    let testStore: TestStore
    let server: RunningServer
    const { log, lines } = createReadableLog('warn')
    beforeAll(async () => {
      testStore = await createTestStore(store)
      server = await startServer({ settings: testSettings(), store: testStore.target, log })
      for (const queue of [{ queue_name: 'dead' }, { queue_name: 'q', dead_queue: 'dead' }]) {
        const { status, body } = await ask('POST', '/v1/queues.create', { ...spec, ...queue })
        expect(status, JSON.stringify(body)).toBe(200)
      }
    })
    afterAll(async () => {
      await server?.stop(0)
      await testStore?.drop()
    })

    const ask = async (
      method: string,
      path: string,
      body?: object,
      headers: Record<string, string> = {},
    ): Promise<Answer> => {
      const response = await fetch(`${server.url}${path}`, {
        method,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: (await response.json()) as Answer['body'] }
    }
    let names = 0
    const createName = () => `name-${++names}`
    const call = (method: string, body: object) => ask('POST', `/v1/${method}`, body)
    const v1 = (path: string, body: object) => ask('POST', `/api/v1/queues/q/${path}`, body)
    const leaseOne = async (): Promise<string> => {
      await call('queue.clear', { queue_name: 'q', queue: true, destructive: true })
      await call('queue.produce', { queue_name: 'q', request_timeout: '1m', items: [{}] })
      const lease = { queue_name: 'q', request_timeout: '5s', client_id: 'c', batch_size: 1 }
      const { body } = await call('queue.lease', lease)
      return (body as unknown as { items: { id: string }[] }).items[0]?.id ?? ''
    }

    /** Every field that accepts a text, by the names of its call and the field. */
    const fields: Readonly<Record<string, (odd: string) => Promise<Answer>>> = {
      'queues.create queue_name': (odd) => call('queues.create', { ...spec, queue_name: odd }),
      'queues.create dead_queue': (odd) =>
        call('queues.create', { ...spec, queue_name: createName(), dead_queue: odd }),
      'queues.create reference': (odd) =>
        call('queues.create', { ...spec, queue_name: createName(), reference: odd }),
      'queues.create namespace': (odd) =>
        call('queues.create', { ...spec, queue_name: createName(), namespace: odd }),
      'queues.create lease_timeout': (odd) =>
        call('queues.create', { ...spec, queue_name: createName(), lease_timeout: odd }),
      'queues.update queue_name': (odd) => call('queues.update', { queue_name: odd }),
      'queues.update dead_queue': (odd) => call('queues.update', { queue_name: 'dead', dead_queue: odd }),
      'queues.update reference': (odd) => call('queues.update', { queue_name: 'dead', reference: odd }),
      'queues.list pivot': (odd) => call('queues.list', { pivot: odd }),
      'queues.list namespace': (odd) => call('queues.list', { namespace: odd }),
      'queues.info queue_name': (odd) => call('queues.info', { queue_name: odd }),
      'queue.stats queue_name': (odd) => call('queue.stats', { queue_name: odd }),
      'queue.clear queue_name': (odd) => call('queue.clear', { queue_name: odd, queue: true }),
      'queue.reload queue_name': (odd) => call('queue.reload', { queue_name: odd }),
      'queue.produce queue_name': (odd) =>
        call('queue.produce', { queue_name: odd, request_timeout: '1m', items: [{}] }),
      ...forEachField(['kind', 'encoding', 'reference', 'utf8'], 'queue.produce', (item) =>
        call('queue.produce', { queue_name: 'q', request_timeout: '1m', items: [item] }),
      ),
      'queue.lease queue_name': (odd) =>
        call('queue.lease', { queue_name: odd, request_timeout: '20ms', client_id: 'c', batch_size: 1 }),
      'queue.lease client_id': (odd) =>
        call('queue.lease', { queue_name: 'q', request_timeout: '20ms', client_id: odd, batch_size: 1 }),
      'queue.complete ids': (odd) =>
        call('queue.complete', { queue_name: 'q', request_timeout: '1m', ids: [padToIdLength(odd)] }),
      'queue.retry id': (odd) =>
        call('queue.retry', { queue_name: 'q', items: [{ id: padToIdLength(odd) }] }),
      ...forEachField(['error_class', 'message', 'stack', 'error_code'], 'X-Redrive-Error', async (error) => {
        const items = [{ id: await leaseOne(), dead: true }]
        const header = { 'x-redrive-error': toAsciiJson(error) }
        return ask('POST', '/v1/queue.retry', { queue_name: 'q', items }, header)
      }),
      'items.list pivot': (odd) => call('storage/items.list', { queue_name: 'q', pivot: padToIdLength(odd) }),
      ...forEachField(['id', 'source_id', 'kind', 'encoding', 'reference'], 'items.import', (item) =>
        call('storage/items.import', { queue_name: 'q', items: [item] }),
      ),
      'items.delete ids': (odd) =>
        call('storage/items.delete', { queue_name: 'q', ids: [padToIdLength(odd)] }),
      'queues.delete queue_name': (odd) => call('queues.delete', { queue_name: odd }),

      '/api/v1 create name': (odd) => ask('POST', '/api/v1/queues', { name: odd }),
      ...forEachField(['dead_queue', 'reference', 'lease_timeout'], '/api/v1 create policy', (policy) =>
        ask('POST', '/api/v1/queues', { name: createName(), policy }),
      ),
      '/api/v1 create reason': (odd) => ask('POST', '/api/v1/queues', { name: createName(), reason: odd }),
      '/api/v1 list cursor': (odd) => ask('GET', `/api/v1/queues?cursor=${encodeForUrl(odd)}`),
      '/api/v1 get name': (odd) => ask('GET', `/api/v1/queues/${encodeForUrl(odd)}`),
      '/api/v1 change name': (odd) => ask('PATCH', `/api/v1/queues/${encodeForUrl(odd)}`, { policy: {} }),
      '/api/v1 change reason': (odd) => ask('PATCH', '/api/v1/queues/q', { policy: {}, reason: odd }),
      '/api/v1 pause name': (odd) => ask('POST', `/api/v1/queues/${encodeForUrl(odd)}/pause`, {}),
      '/api/v1 resume reason': (odd) => v1('resume', { reason: odd }),
      '/api/v1 delete name': (odd) => ask('DELETE', `/api/v1/queues/${encodeForUrl(odd)}`),
      '/api/v1 delete reason': (odd) => ask('DELETE', `/api/v1/queues/none?reason=${encodeForUrl(odd)}`),
      '/api/v1 items name': (odd) =>
        ask('POST', `/api/v1/queues/${encodeForUrl(odd)}/items`, { items: [{}] }),
      ...forEachField(['kind', 'encoding', 'reference'], '/api/v1 items', (item) =>
        v1('items', { items: [item] }),
      ),
      ...forEachField(['text', 'json', 'base64'], '/api/v1 items payload', (payload) =>
        v1('items', { items: [{ payload }] }),
      ),
      ...forEachField(['text', 'base64'], '/api/v1 items key', (key) => v1('items', { items: [{ key }] })),
      ...forEachField(['name', 'text', 'base64'], '/api/v1 items header', (header) =>
        v1('items', { items: [{ headers: [{ name: 'h', ...header }] }] }),
      ),
      '/api/v1 items idempotency_key': (odd) => v1('items', { items: [{}], idempotency_key: odd }),
      '/api/v1 extend name': (odd) =>
        ask('POST', `/api/v1/queues/${encodeForUrl(odd)}/leases/extend`, {
          partition: 0,
          ids: [padToIdLength('')],
        }),
      '/api/v1 extend ids': (odd) => v1('leases/extend', { partition: 0, ids: [padToIdLength(odd)] }),
      '/api/v1 cancel name': (odd) =>
        ask('POST', `/api/v1/queues/${encodeForUrl(odd)}/leases/cancel`, { client_id: 'c' }),
      '/api/v1 cancel client_id': (odd) => v1('leases/cancel', { client_id: odd }),
    }

    it.each(Object.keys(fields))(
      'an unusual text in %s is stored or refused with a 4xx status',
      async (name) => {
        for (const [description, odd] of unusualTexts) {
          const { status, body } = await (fields[name] as (odd: string) => Promise<Answer>)(odd)
          const isKnown = status === 200 || (status >= 400 && status < 500)
          expect(isKnown, `${description}: ${status} ${JSON.stringify(body)}`).toBe(true)
        }
        expect(lines.filter(({ level }) => level === 'error')).toEqual([])
      },
    )

    it('a stored unusual text is returned unchanged', async () => {
      const [, nul] = unusualTexts[0]
      const [, noncharacters] = unusualTexts[2]
      await call('queue.clear', { queue_name: 'q', queue: true, destructive: true })
      const item = { kind: noncharacters, encoding: noncharacters, reference: noncharacters }
      await call('queue.produce', {
        queue_name: 'q',
        request_timeout: '1m',
        items: [{ ...item, utf8: nul }],
      })
      await v1('items', { items: [{ ...item, payload: { text: nul } }] })
      const { body } = await call('storage/items.list', { queue_name: 'q' })
      const payload = Buffer.from(nul).toString('base64')
      expect(body.items).toMatchObject([
        { ...item, payload },
        { ...item, payload },
      ])
    })

    it('the refusal of an unusual text names its field and the invalid character', async () => {
      const { status, body } = await v1('items', { items: [{}, { headers: [{ name: 'a\0b' }] }] })
      expect([status, body]).toMatchObject([
        400,
        {
          error: {
            details: [{ field: 'body.items[1].headers[0].name', message: 'contains a NUL character' }],
          },
        },
      ])
      const surrogate = await v1('items', { items: [{ payload: { text: 'a\ud800b' } }] })
      expect([surrogate.status, surrogate.body]).toMatchObject([
        400,
        {
          error: {
            details: [{ field: 'body.items[0].payload.text', message: 'contains an unpaired surrogate' }],
          },
        },
      ])
    })
  })
}

function forEachField(
  fields: readonly string[],
  name: string,
  send: (fields: Record<string, string>) => Promise<Answer>,
): Record<string, (odd: string) => Promise<Answer>> {
  return Object.fromEntries(fields.map((field) => [`${name} ${field}`, (odd) => send({ [field]: odd })]))
}

/** A text with the length of an id. */
function padToIdLength(odd: string): string {
  return odd + '0'.repeat(27 - odd.length)
}

function encodeForUrl(odd: string): string {
  // `encodeURIComponent` refuses an unpaired surrogate. This is its encoding by the rules of UTF-8.
  return odd.isWellFormed() ? encodeURIComponent(odd) : 'a%ED%A0%80b'
}

function toAsciiJson(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
