/** The view of callers who may not read payloads, of a queue with redaction rules: over HTTP. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { startTenantApi, type TenantApi } from './tenants.ts'

const secret = '4711 0815 4242'
const rules = [{ pattern: '\\b\\d{4} \\d{4} \\d{4}\\b' }, { json_path: '$.owner' }, { header: 'X-Customer' }]

describe.each(['SQLite memory', 'PostgreSQL'] as const)('redaction (%s)', needsOf('PostgreSQL'), (store) => {
  let api: TenantApi
  let place: TestStore
  let storage: Storage
  let letter = ''
  let group = 0

  const send = async (
    caller: 'south' | 'south-viewer' | 'admin-viewer',
    method: string,
    path: string,
    body?: object,
  ) => {
    const { status, text } = await api.send(caller, method, path, body)
    expect(status, `${method} ${path}: ${text}`).toBe(200)
    return JSON.parse(text)
  }

  beforeAll(async () => {
    place = await createTestStore(store)
    storage = await place.open()
    const { version } = await storage.readAccessState()
    const namespace = { name: 'south', description: '', keyTag: '', createdAt: 0 }
    await storage.write([{ op: 'change-access', version, changes: [{ change: 'put-namespace', namespace }] }])
    api = await startTenantApi(storage)
    await send('south', 'POST', '/api/v1/queues', { name: 'dead', namespace: 'south' })
    const captured = await send('south', 'POST', '/api/v1/letters', {
      queue: 'dead',
      letters: [
        {
          original_topic: 'orders',
          original_value: { owner: 'Ann', note: `card ${secret}`, total: 12 },
          original_key: `key ${secret}`,
          headers: { 'x-customer': 'Ann', 'x-note': `n ${secret}`, authorization: 'Bearer abc' },
          error_details: {
            exception_class: 'Refused',
            message: `card ${secret} refused`,
            stack_trace: `at ${secret}`,
          },
          source_id: 'one',
        },
      ],
    })
    letter = captured.letters[0].id
    group = (await send('south', 'GET', '/api/v1/groups')).groups[0].id
    const body = { rules, is_content_shown: true, reason: 'cards' }
    await send('south', 'PUT', '/api/v1/queues/dead/redaction-rules', body)
  })
  afterAll(async () => {
    await api?.stop()
    await place?.drop()
  })

  it('the rules are read as they were set, and the change has an audit row', async () => {
    const read = await send('south-viewer', 'GET', '/api/v1/queues/dead/redaction-rules')
    expect(read).toEqual({
      rules: [{ pattern: rules[0]?.pattern }, { json_path: '$["owner"]' }, { header: 'X-Customer' }],
      is_content_shown: true,
    })
    const { entries } = await send('south', 'GET', '/api/v1/audit?action=queue.update')
    expect(entries[0]).toMatchObject({ target: 'dead', namespace: 'south', reason: 'cards' })
    expect(entries[0].details.changes.redaction.is_content_shown).toBe(true)
  })

  it('a caller without payload.read sees the payload without the named parts', async () => {
    const seen = await send('south-viewer', 'GET', `/api/v1/letters/${letter}?payload_form=json`)
    expect(seen.payload.json).toEqual({ owner: '[redacted]', note: 'card [redacted]', total: 12 })
    expect(seen.key).toEqual({ text: 'key [redacted]' })
    expect(seen.failures[0]).toMatchObject({ message: 'card [redacted] refused', stack: 'at [redacted]' })
    const values = seen.headers.map((each: { name: string; text: string }) => [each.name, each.text])
    expect(Object.fromEntries(values)).toMatchObject({
      'x-customer': '[redacted]',
      'x-note': 'n [redacted]',
      authorization: '[redacted]',
    })
  })

  it('no list, export, group or cause shows a named part', async () => {
    const paths = [
      '/api/v1/letters',
      '/api/v1/letters/export',
      '/api/v1/groups',
      `/api/v1/groups/${group}`,
      '/api/v1/causes',
      '/api/v1/letters/counts?by=queue,error_class,slug',
      '/api/v1/dlq',
      '/api/v1/dlq/orders',
      `/api/v1/dlq/messages/${letter}`,
      '/api/v1/dlq/messages',
    ]
    for (const path of paths) {
      const { status, text } = await api.send('south-viewer', 'GET', path)
      expect([200, 400], `${path} ${text}`).toContain(status)
      expect(text, path).not.toMatch(/4711|0815|"Ann"/)
    }
    const spec = { action: 'discard', filter: { queue: 'dead' } }
    const preview = await api.send('south-viewer', 'POST', '/api/v1/campaigns/preview', spec)
    expect(preview.status, preview.text).toBe(200)
    expect(preview.text).not.toMatch(/4711|0815|"Ann"/)
    const mine = await send('south', 'GET', `/api/v1/letters/${letter}`)
    expect(mine.failures[0].message).toContain(secret)
  })

  it('a search cannot find out what the rules hide', async () => {
    for (const search of [
      'message=4711',
      'queue=dead&message=4711',
      'payload_contains=Ann',
      'header=x-customer=Ann',
    ]) {
      const { status } = await api.send('south-viewer', 'GET', `/api/v1/letters?${search}`)
      expect(status, search).toBe(403)
    }
    const spec = { name: 'x', reason: 'x', action: 'discard', filter: { queue: 'dead', message: '4711' } }
    for (const path of ['/api/v1/campaigns', '/api/v1/campaigns/preview']) {
      const body = path.endsWith('preview') ? { action: spec.action, filter: spec.filter } : spec
      const { status, text } = await api.send('south-viewer', 'POST', path, body)
      expect(status, text).toBe(403)
    }
  })

  it('a caller who may not read payloads cannot change the rules', async () => {
    const body = { rules: [], is_content_shown: true }
    const { status } = await api.send('south-viewer', 'PUT', '/api/v1/queues/dead/redaction-rules', body)
    expect(status).toBe(403)
  })

  it.each([
    [{ pattern: '(' }, /not valid RE2/],
    [{ pattern: 'a', header: 'b' }, /only one of them/],
    [{ json_path: '$' }, /names no field/],
    [{ json_path: '$.a[' }, /cannot be read/],
    [{ json_path: '$.a"[*]"' }, /cannot be read/],
  ])('the rule %j is refused with its reason', async (rule, reason) => {
    const { status, text } = await api.send('south', 'PUT', '/api/v1/queues/dead/redaction-rules', {
      rules: [rule],
    })
    expect(status, text).toBe(400)
    expect(text).toMatch(reason)
  })

  it('removing the rules hides the payload again', async () => {
    await send('south', 'PUT', '/api/v1/queues/dead/redaction-rules', { rules: [] })
    const seen = await send('admin-viewer', 'GET', `/api/v1/letters/${letter}`)
    expect(seen.payload.text).toBe('[redacted]')
    expect(seen.failures[0].message).toContain(secret)
  })
})
