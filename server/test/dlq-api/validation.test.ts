import { describe, expect, it } from 'vitest'
import { connectRaw } from '../http/raw-connection.ts'
import { sendRequest } from '../http/store-server.ts'
import { shareTestApi } from '../http/test-api.ts'

const api = shareTestApi()

describe('the management API without a store', () => {
  it('a management call without a store is answered with DEPENDENCY_ERROR, request id and debug id', async () => {
    const { status, headers, body } = await sendRequest(`${api.url}/api/v1/dlq/stats`, 'GET', undefined, {
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

  it('a requeue checks its schema, then the store, then the number of ids', async () => {
    const requeue = async (body: unknown) =>
      (await sendRequest(`${api.url}/api/v1/dlq/requeue`, 'POST', body)).status
    expect(await requeue({ ids: [1] })).toBe(400)
    expect(await requeue({ ids: Array(501).fill('x') })).toBe(503)
  })

  it('a purge is validated before the store is needed', async () => {
    expect((await sendRequest(`${api.url}/api/v1/dlq/purge`, 'POST', {})).status).toBe(400)
    expect(
      (await sendRequest(`${api.url}/api/v1/dlq/purge`, 'POST', { older_than: '2025-01-01' })).status,
    ).toBe(503)
  })
})

describe('validation of the management API', () => {
  const cases: readonly [what: string, path: string, body: unknown, fields: readonly string[]][] = [
    ['page 0', '?page=0', undefined, ['page']],
    ['a page that is not a number', '?page=abc', undefined, ['page']],
    ['a fractional page', '?page=1.5', undefined, ['page']],
    ['a page given twice', '?page=1&page=2', undefined, ['page']],
    ['a page above the largest integer', `?page=${'9'.repeat(30)}`, undefined, ['page']],
    ['a page size of 0', '?page_size=0', undefined, ['page_size']],
    ['a page size above the limit', '?page_size=101', undefined, ['page_size']],
    ['an unknown order', '?order_by=id', undefined, ['order_by']],
    ['an unknown direction', '?order_dir=down', undefined, ['order_dir']],
    ['a bad date', '?from=yesterday', undefined, ['from']],
    ['a date that does not exist', '?to=2025-02-30', undefined, ['to']],
    ['a reason with a NUL character', '?reason=%00', undefined, ['reason']],
    ['an unknown parameter', '?form=2025-01-01', undefined, ['form']],
    ['a requeue without ids', '/requeue', {}, ['ids']],
    ['a requeue of an empty list', '/requeue', { ids: [] }, ['ids']],
    ['a requeue of numeric ids', '/requeue', { ids: [41, 42] }, ['ids[0]', 'ids[1]']],
    ['a requeue of a text instead of a list', '/requeue', { ids: '41' }, ['ids']],
    ['a purge without a selection', '/purge', {}, ['ids']],
    ['a purge by reason alone', '/purge', { reason: 'network' }, ['ids']],
    ['a purge by an empty list', '/purge', { ids: [] }, ['ids']],
    ['a purge by ids and by age', '/purge', { ids: ['41'], older_than: '2025-02-01T00:00:00Z' }, ['ids']],
    ['a purge by ids with a reason', '/purge', { ids: ['41'], reason: 'network' }, ['reason']],
    ['a purge by ids with a match', '/purge', { ids: ['41'], match: 'code' }, ['match']],
    ['a purge with a match but no reason', '/purge', { older_than: '2025-02-01', match: 'code' }, ['match']],
    ['a purge with an unknown match', '/purge', { older_than: '2025-02-01', match: 'like' }, ['match']],
    ['a purge by a bad date', '/purge', { older_than: 'soon' }, ['older_than']],
    ['a purge by a number', '/purge', { older_than: 1738368000 }, ['older_than']],
    ['a purge by an empty reason', '/purge', { older_than: '2025-02-01', reason: ' ' }, ['reason']],
    ['a purge with a misspelt filter', '/purge', { older_than: '2025-02-01', reson: 'x' }, ['reson']],
    ['a purge of more ids than the limit', '/purge', { ids: Array(1_001).fill('41') }, ['ids']],
    ['a purge of an invalid id', '/purge', { ids: ['41', 'abc'] }, ['ids[1]']],
    ['a purge of an empty id', '/purge', { ids: ['  '] }, ['ids[0]']],
  ]
  it.each(cases)('%s is refused with the name of the field', async (_what, path, body, fields) => {
    const answer = await sendRequest(
      `${api.url}/api/v1/dlq${path}`,
      body === undefined ? 'GET' : 'POST',
      body,
    )
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

  it('a management body that is not JSON is refused with VALIDATION_ERROR', async () => {
    for (const [body, type, status] of [
      ['{"ids":', 'application/json', 400],
      ['ids=1', 'application/x-www-form-urlencoded', 415],
    ] as const) {
      const answer = await sendRequest(`${api.url}/api/v1/dlq/requeue`, 'POST', body, {
        'content-type': type,
      })
      expect([answer.status, answer.body.error.code]).toEqual([status, 'VALIDATION_ERROR'])
    }
  })

  it('GET on a POST path of the management API is 405 and not a topic', async () => {
    for (const path of ['/requeue', '/purge']) {
      const answer = await sendRequest(`${api.url}/api/v1/dlq${path}`, 'GET')
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
      expect(answer.body).toMatchObject({ ok: false, error: { code: 'VALIDATION_ERROR' } })
    }
  })
})

describe('validation of the topic API', () => {
  const errorBody = (code: string, fields: readonly string[] = []) => ({
    error: {
      code,
      message: expect.any(String),
      request_id: expect.any(String),
      details: fields.map((field) => ({ field, reason: 'invalid', message: expect.any(String) })),
    },
  })

  it('a topic call without a store is answered with SYS_DLQ_INTERNAL_ERROR', async () => {
    const answer = await sendRequest(`${api.url}/api/v1/dlq/orders`, 'GET')
    expect([answer.status, answer.body]).toEqual([503, errorBody('SYS_DLQ_INTERNAL_ERROR')])
    expect(answer.body.error.request_id).toBe(answer.headers.get('x-request-id'))
  })

  it('a page of a topic that is not a number is refused with the name of the field', async () => {
    const answer = await sendRequest(`${api.url}/api/v1/dlq/orders?page=one`, 'GET')
    expect([answer.status, answer.body]).toEqual([400, errorBody('SYS_DLQ_VALIDATION_ERROR', ['page'])])
  })

  it('an unknown path below a topic is 404, and an unknown method is 405', async () => {
    const answer = await sendRequest(`${api.url}/api/v1/dlq/orders/nothing/here`, 'GET')
    expect([answer.status, answer.body]).toEqual([404, errorBody('SYS_DLQ_NOT_FOUND')])
    const put = await sendRequest(`${api.url}/api/v1/dlq/orders`, 'PUT', {})
    expect([put.status, put.headers.get('allow'), put.body]).toEqual([
      405,
      'GET, HEAD',
      errorBody('SYS_DLQ_VALIDATION_ERROR'),
    ])
  })
})

describe('methods without a route', () => {
  const management = { ok: false, error: { code: 'VALIDATION_ERROR', message: expect.any(String) } }
  const messages = { error: { code: 'SYS_DLQ_VALIDATION_ERROR', details: [] } }

  it.each([
    ['PROPFIND', '', 'GET, HEAD', management],
    ['QUERY', '/stats', 'GET, HEAD', management],
    ['LOCK', '/orders', 'GET, HEAD', messages],
    ['PATCH', '/messages/41', 'GET, HEAD, DELETE', messages],
    ['SEARCH', '/messages/41/retry', 'POST', messages],
  ])('%s %s is 405 in the format of its API', async (method, path, allow, body) => {
    const answer = await sendRequest(`${api.url}/api/v1/dlq${path}`, method)
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    expect(answer.body).toMatchObject(body)
  })

  it.each([
    ['/stats?page=1', management],
    ['/orders', messages],
    ['/orders/nothing/here', messages],
  ])('a method unknown to HTTP is refused in the format of the API: FETCH %s', async (path, expected) => {
    const raw = await connectRaw(api.port)
    raw.write(`FETCH /api/v1/dlq${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const [head = '', body = ''] = (await raw.readToEnd()).split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1\.1 400 /)
    expect(JSON.parse(body)).toMatchObject(expected)
  })
})
