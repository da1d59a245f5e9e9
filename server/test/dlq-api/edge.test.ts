import { describe, expect, it } from 'vitest'
import { startTestApi } from '../http/api.ts'
import { connectRaw } from '../http/raw.ts'
import type { Answer } from './desk.ts'

const json = { 'content-type': 'application/json' }

async function ask(
  url: string,
  method = 'GET',
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { ...(body !== undefined && json), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

describe('without a store, the management face', () => {
  it('says that what it depends on is away, with the ids that logs are searched by', async () => {
    const { url } = await startTestApi()
    const { status, headers, body } = await ask(`${url}/api/v1/dlq/stats`, 'GET', undefined, {
      'x-request-id': 'mine-1',
    })
    expect(status).toBe(503)
    expect(body).toEqual({
      ok: false,
      error: { code: 'DEPENDENCY_ERROR', message: 'the store cannot be reached' },
    })
    expect([headers.get('x-debug-id'), headers.get('x-request-id')]).toEqual(['mine-1', 'mine-1'])
    expect(headers.get('retry-after')).toBe('2')
  })

  it('checks the schema first, then whether it can be done, then the list of ids', async () => {
    const { url } = await startTestApi()
    const requeue = async (body: unknown) => (await ask(`${url}/api/v1/dlq/requeue`, 'POST', body)).status
    expect(await requeue({ ids: [1] })).toBe(400)
    expect(await requeue({ ids: Array(501).fill('x') })).toBe(503)
  })

  it('refuses a purge for what it asks, before it looks for the store', async () => {
    const { url } = await startTestApi()
    expect((await ask(`${url}/api/v1/dlq/purge`, 'POST', {})).status).toBe(400)
    expect((await ask(`${url}/api/v1/dlq/purge`, 'POST', { older_than: '2025-01-01' })).status).toBe(503)
  })
})

describe('the management face refuses', () => {
  const cases: readonly [what: string, path: string, body: unknown, fields: readonly string[]][] = [
    ['page 0', '?page=0', undefined, ['page']],
    ['a page that is no number', '?page=abc', undefined, ['page']],
    ['half a page', '?page=1.5', undefined, ['page']],
    ['a page given twice', '?page=1&page=2', undefined, ['page']],
    ['a page beyond all numbers', `?page=${'9'.repeat(30)}`, undefined, ['page']],
    ['an empty page size', '?page_size=0', undefined, ['page_size']],
    ['a page size over the bound', '?page_size=101', undefined, ['page_size']],
    ['another order', '?order_by=id', undefined, ['order_by']],
    ['another direction', '?order_dir=down', undefined, ['order_dir']],
    ['a bad date', '?from=yesterday', undefined, ['from']],
    ['a date that is in no calendar', '?to=2025-02-30', undefined, ['to']],
    ['a text that no store keeps', '?reason=%00', undefined, ['reason']],
    ['an unknown parameter', '?form=2025-01-01', undefined, ['form']],
    ['a requeue without ids', '/requeue', {}, ['ids']],
    ['a requeue of none', '/requeue', { ids: [] }, ['ids']],
    ['a requeue of numbers', '/requeue', { ids: [41, 42] }, ['ids[0]', 'ids[1]']],
    ['a requeue of one text', '/requeue', { ids: '41' }, ['ids']],
    ['a purge of nothing', '/purge', {}, ['ids']],
    ['a purge by reason alone', '/purge', { reason: 'network' }, ['ids']],
    ['a purge by an empty list', '/purge', { ids: [] }, ['ids']],
    ['a purge both ways', '/purge', { ids: ['41'], older_than: '2025-02-01T00:00:00Z' }, ['ids']],
    ['a purge by a bad date', '/purge', { older_than: 'soon' }, ['older_than']],
    ['a purge by a number', '/purge', { older_than: 1738368000 }, ['older_than']],
    ['a purge by an empty reason', '/purge', { older_than: '2025-02-01', reason: ' ' }, ['reason']],
    ['a purge with a misspelt filter', '/purge', { older_than: '2025-02-01', reson: 'x' }, ['reson']],
    ['a purge of too many', '/purge', { ids: Array(1_001).fill('41') }, ['ids']],
    ['a purge of what is no id', '/purge', { ids: ['41', 'abc'] }, ['ids[1]']],
    ['a purge of an empty id', '/purge', { ids: ['  '] }, ['ids[0]']],
  ]
  it.each(cases)('%s', async (_what, path, body, fields) => {
    const { url } = await startTestApi()
    const answer = await ask(`${url}/api/v1/dlq${path}`, body === undefined ? 'GET' : 'POST', body)
    expect(answer.status).toBe(400)
    expect(answer.body).toEqual({
      ok: false,
      error: {
        code: 'VALIDATION_ERROR',
        message: expect.any(String),
        meta: { fields: expect.any(Array) },
      },
    })
    const { fields: named } = answer.body.error.meta
    expect([...new Set(named.map((field: { name: string }) => field.name))]).toEqual(fields)
    expect(answer.headers.get('x-debug-id')).toBe(answer.headers.get('x-request-id'))
  })

  it('what is not JSON', async () => {
    const { url } = await startTestApi()
    for (const [body, type, status] of [
      ['{"ids":', 'application/json', 400],
      ['ids=1', 'application/x-www-form-urlencoded', 415],
    ] as const) {
      const answer = await ask(`${url}/api/v1/dlq/requeue`, 'POST', body, { 'content-type': type })
      expect([answer.status, answer.body.error.code]).toEqual([status, 'VALIDATION_ERROR'])
    }
  })

  it('other methods of its paths, which are no topics', async () => {
    const { url } = await startTestApi()
    for (const path of ['/requeue', '/purge']) {
      const answer = await ask(`${url}/api/v1/dlq${path}`)
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
      expect(answer.body).toMatchObject({ ok: false, error: { code: 'VALIDATION_ERROR' } })
    }
  })
})

describe('the message face refuses', () => {
  const refused = (code: string, fields: readonly string[] = []) => ({
    error: {
      code,
      message: expect.any(String),
      request_id: expect.any(String),
      details: fields.map((field) => ({ field, reason: 'invalid', message: expect.any(String) })),
    },
  })

  it('without a store, as something inside', async () => {
    const { url } = await startTestApi()
    const answer = await ask(`${url}/api/v1/dlq/orders`)
    expect([answer.status, answer.body]).toEqual([503, refused('SYS_DLQ_INTERNAL_ERROR')])
    expect(answer.body.error.request_id).toBe(answer.headers.get('x-request-id'))
  })

  it('pages that are no numbers', async () => {
    const { url } = await startTestApi()
    const answer = await ask(`${url}/api/v1/dlq/orders?page=one`)
    expect([answer.status, answer.body]).toEqual([400, refused('SYS_DLQ_VALIDATION_ERROR', ['page'])])
  })

  it('paths that are not there, and methods', async () => {
    const { url } = await startTestApi()
    const answer = await ask(`${url}/api/v1/dlq/orders/nothing/here`)
    expect([answer.status, answer.body]).toEqual([404, refused('SYS_DLQ_NOT_FOUND')])
    const put = await ask(`${url}/api/v1/dlq/orders`, 'PUT', {})
    expect([put.status, put.headers.get('allow'), put.body]).toEqual([
      405,
      'GET, HEAD',
      refused('SYS_DLQ_VALIDATION_ERROR'),
    ])
  })
})

describe('methods that nobody has', () => {
  const management = { ok: false, error: { code: 'VALIDATION_ERROR', message: expect.any(String) } }
  const messages = { error: { code: 'SYS_DLQ_VALIDATION_ERROR', details: [] } }

  it.each([
    ['PROPFIND', '', 'GET, HEAD', management],
    ['QUERY', '/stats', 'GET, HEAD', management],
    ['LOCK', '/orders', 'GET, HEAD', messages],
    ['PATCH', '/messages/41', 'GET, HEAD, DELETE', messages],
    ['SEARCH', '/messages/41/retry', 'POST', messages],
  ])('are refused as others are: %s %s', async (method, path, allow, body) => {
    const { url } = await startTestApi()
    const answer = await ask(`${url}/api/v1/dlq${path}`, method)
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    expect(answer.body).toMatchObject(body)
  })

  it.each([
    ['/stats?page=1', management],
    ['/orders', messages],
    ['/orders/nothing/here', messages],
  ])('are refused in the words of the path when HTTP does not know them: FETCH %s', async (path, body) => {
    const { port } = await startTestApi()
    const raw = await connectRaw(port)
    raw.write(`FETCH /api/v1/dlq${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const [head = '', told = ''] = (await raw.readToEnd()).split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1\.1 400 /)
    expect(JSON.parse(told)).toMatchObject(body)
  })
})
