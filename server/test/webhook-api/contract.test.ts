/**
 * The rows of the contract with existing clients, one by one: request and status. Longer stories are in the
 * other files of this folder.
 */
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { settingsTable } from '../../src/config/settings/settings.ts'
import { describeWebhookServers, type WebhookAnswer } from './webhook-server.ts'

type Sent = Readonly<{ form?: Record<string, string>; body?: string; headers?: Record<string, string> }>
type Row = readonly [name: string, method: string, path: string, sent: Sent, status: number]

const tokens = (channel: string, consumer: string) => ({
  'X-Broker-Channel-Token': channel,
  'X-Broker-Consumer-Token': consumer,
})
const right = { headers: tokens('c-token', 'pull-token') }
const rightPush = { headers: tokens('c-token', 'push-token') }
const pull = '/channel/c/consumer/pull'
const push = '/channel/c/consumer/push'
const gone = '9m4e2mr0ui3e8a215n4g'
const old = { 'If-Unmodified-Since': 'Sun, 06 Nov 1994 08:49:37 GMT' }
const noDate = { 'If-Unmodified-Since': 'yesterday' }
const producer = { 'X-Broker-Producer-ID': 'p', 'X-Broker-Producer-Token': 'p-token' }
const channelToken = { 'X-Broker-Channel-Token': 'c-token' }
const broadcastHeaders = { ...channelToken, ...producer }
const url = { callbackUrl: 'http://a.example/' }
const typed = (type: string): Sent => ({ body: 'token=x', headers: { 'Content-Type': type } })

const rows: readonly Row[] = [
  // 1. Conventions
  ['an unknown path', 'GET', '/channel/c/unknown', {}, 404],
  ['paths are case-sensitive', 'GET', '/Channel/c', {}, 404],
  ['another method on a known path', 'DELETE', '/producer/p', {}, 405],
  ['another method on a status page', 'POST', '/dlq-status', {}, 405],
  ['a form without a type', 'PUT', '/producer/p2', {}, 415],
  ['a form with another type', 'PUT', '/producer/p2', typed('application/json'), 415],
  [
    'a form with parameters',
    'PUT',
    '/producer/p2',
    typed('application/x-www-form-urlencoded;charset=utf-8'),
    200,
  ],
  ['a form type in capitals', 'PUT', '/producer/p3', typed('Application/X-WWW-Form-Urlencoded'), 200],
  ['PUT without If-Unmodified-Since', 'PUT', '/producer/p', { form: { token: 'p-token' } }, 400],
  ['PUT with an old date', 'PUT', '/producer/p', { form: {}, headers: old }, 412],
  ['PUT with an unreadable date', 'PUT', '/producer/p', { form: {}, headers: noDate }, 412],
  ['both cursors', 'GET', '/channels?next=a&previous=b', {}, 400],
  ['an unreadable cursor', 'GET', '/channels?next=%25%25', {}, 200],
  // 2. Producers, channels, consumers
  ['a producer', 'GET', '/producer/p', {}, 200],
  ['an unknown producer', 'GET', '/producer/nobody', {}, 404],
  ['ids are matched exactly', 'GET', '/producer/P', {}, 404],
  ['an unknown channel', 'GET', '/channel/nowhere', {}, 404],
  ['consumers of an unknown channel', 'GET', '/channel/nowhere/consumers', {}, 404],
  ['an unknown consumer', 'GET', '/channel/c/consumer/nobody', {}, 404],
  ['a consumer of an unknown channel', 'PUT', '/channel/nowhere/consumer/k', { form: url }, 404],
  ['a consumer without callbackUrl', 'PUT', '/channel/c/consumer/k', { form: {} }, 400],
  ['a pull consumer without callbackUrl', 'PUT', '/channel/c/consumer/k', { form: { type: 'pull' } }, 400],
  ['a relative callbackUrl', 'PUT', '/channel/c/consumer/k', { form: { callbackUrl: '/x' } }, 400],
  ['an unknown type', 'PUT', '/channel/c/consumer/k', { form: { ...url, type: 'both' } }, 400],
  ['an empty type', 'PUT', '/channel/c/consumer/k', { form: { ...url, type: '' } }, 200],
  ['an id of 255 characters', 'PUT', `/channel/${'x'.repeat(255)}`, { form: {} }, 200],
  ['an id of 256 characters', 'PUT', `/channel/${'x'.repeat(256)}`, { form: {} }, 400],
  ['DELETE without a date', 'DELETE', pull, {}, 400],
  ['DELETE with an old date', 'DELETE', pull, { headers: old }, 412],
  ['DELETE of an unknown consumer', 'DELETE', '/channel/c/consumer/nobody', { headers: old }, 404],
  // 3. Broadcasting, in the order of its checks
  ['broadcast: channel unknown', 'POST', '/channel/nowhere/broadcast', { body: '' }, 404],
  ['broadcast: channel token missing', 'POST', '/channel/c/broadcast', { body: '' }, 403],
  ['broadcast: producer missing', 'POST', '/channel/c/broadcast', { body: '', headers: channelToken }, 401],
  [
    'broadcast: producer token wrong',
    'POST',
    '/channel/c/broadcast',
    { body: '', headers: { ...channelToken, 'X-Broker-Producer-ID': 'p' } },
    403,
  ],
  [
    'broadcast: payload empty',
    'POST',
    '/channel/c/broadcast',
    { body: '', headers: { ...broadcastHeaders, 'X-Broker-Scheduled-For': 'x' } },
    400,
  ],
  [
    'broadcast: date unreadable',
    'POST',
    '/channel/c/broadcast',
    { body: 'x', headers: { ...broadcastHeaders, 'X-Broker-Scheduled-For': 'x' } },
    400,
  ],
  [
    'broadcast: date without offset',
    'POST',
    '/channel/c/broadcast',
    { body: 'x', headers: { ...broadcastHeaders, 'X-Broker-Scheduled-For': '2099-01-01T00:00:00' } },
    400,
  ],
  [
    'broadcast: date too early',
    'POST',
    '/channel/c/broadcast',
    { body: 'x', headers: { ...broadcastHeaders, 'X-Broker-Scheduled-For': '2001-01-01T00:00:00Z' } },
    412,
  ],
  [
    'broadcast: too early before a taken id',
    'POST',
    '/channel/c/broadcast',
    {
      body: 'x',
      headers: {
        ...broadcastHeaders,
        'X-Broker-Scheduled-For': '2001-01-01T00:00:00Z',
        'X-Broker-Message-ID': 'taken',
      },
    },
    412,
  ],
  [
    'broadcast: id taken',
    'POST',
    '/channel/c/broadcast',
    { body: 'x', headers: { ...broadcastHeaders, 'X-Broker-Message-ID': 'taken' } },
    409,
  ],
  [
    'broadcast: id too long',
    'POST',
    '/channel/c/broadcast',
    { body: 'x', headers: { ...broadcastHeaders, 'X-Broker-Message-ID': 'x'.repeat(256) } },
    400,
  ],
  [
    'broadcast: id too long, channel unknown',
    'POST',
    '/channel/nowhere/broadcast',
    { body: 'x', headers: { 'X-Broker-Message-ID': 'x'.repeat(256) } },
    404,
  ],
  [
    'broadcast without a content type',
    'POST',
    '/channel/c/broadcast',
    { body: 'x', headers: broadcastHeaders },
    201,
  ],
  ['messages of an unknown channel', 'GET', '/channel/nowhere/messages', {}, 404],
  ['messages of one status', 'GET', '/channel/c/messages?status=102', {}, 200],
  ['a message', 'GET', '/channel/c/message/taken', {}, 200],
  ['an unknown message', 'GET', '/channel/c/message/nothing', {}, 404],
  ['a message of an unknown channel', 'GET', '/channel/nowhere/message/taken', {}, 404],
  ['the status of messages', 'GET', '/channel/c/messages-status', {}, 200],
  ['the status of messages of an unknown channel', 'GET', '/channel/nowhere/messages-status', {}, 404],
  // 5. Pull consumers, in the order of their checks
  ['queued jobs: channel unknown', 'GET', '/channel/nowhere/consumer/pull/queued-jobs', right, 404],
  ['queued jobs: channel token', 'GET', '/channel/c/consumer/nobody/queued-jobs', {}, 403],
  ['queued jobs: consumer unknown', 'GET', '/channel/c/consumer/nobody/queued-jobs', right, 401],
  ['queued jobs: consumer token', 'GET', `${push}/queued-jobs`, right, 403],
  ['queued jobs: not pull', 'GET', `${push}/queued-jobs`, rightPush, 412],
  ['queued jobs', 'GET', `${pull}/queued-jobs`, right, 200],
  ['limit above 100', 'GET', `${pull}/queued-jobs?limit=101`, right, 200],
  ['limit negative', 'GET', `${pull}/queued-jobs?limit=-1`, right, 400],
  ['limit not a number', 'GET', `${pull}/queued-jobs?limit=ten`, right, 400],
  ['job: unknown', 'GET', `${pull}/job/${gone}`, right, 404],
  ['job: not an xid', 'GET', `${pull}/job/1`, right, 404],
  ['job: consumer token before the job', 'GET', `${pull}/job/${gone}`, { headers: channelToken }, 403],
  ['change of a job: malformed body', 'POST', `${pull}/job/${gone}`, { ...right, body: '{' }, 404],
  // 6. Dead jobs
  ['dead jobs', 'GET', `${pull}/dlq`, {}, 200],
  ['dead jobs: channel unknown', 'GET', '/channel/nowhere/consumer/pull/dlq', {}, 404],
  ['dead jobs: consumer unknown', 'GET', '/channel/c/consumer/nobody/dlq', {}, 404],
  ['requeue of all', 'POST', `${pull}/dlq`, { form: { requeue: 'pull-token' } }, 202],
  ['requeue of all: no form', 'POST', `${pull}/dlq`, { body: 'requeue=pull-token' }, 415],
  [
    'requeue of all: consumer unknown',
    'POST',
    '/channel/c/consumer/nobody/dlq',
    { form: { requeue: 'x' } },
    404,
  ],
  ['requeue of all: wrong token', 'POST', `${pull}/dlq`, { form: { requeue: 'x' } }, 400],
  [
    'requeue of one: consumer unknown',
    'POST',
    `/channel/c/consumer/nobody/job/${gone}/requeue-dead-job`,
    right,
    401,
  ],
  ['requeue of one: job unknown', 'POST', `${pull}/job/${gone}/requeue-dead-job`, right, 404],
  ['requeue of one: push consumers, too', 'POST', `${push}/job/${gone}/requeue-dead-job`, rightPush, 404],
  ['purge: channel unknown', 'DELETE', '/channel/nowhere/consumer/pull/dlq', right, 404],
  ['purge: channel token', 'DELETE', '/channel/c/consumer/nobody/dlq', {}, 403],
  ['purge: consumer unknown', 'DELETE', '/channel/c/consumer/nobody/dlq', right, 404],
  ['purge: consumer token', 'DELETE', `${pull}/dlq`, { headers: channelToken }, 403],
  ['purge of a push consumer', 'DELETE', `${push}/dlq`, rightPush, 200],
  ['delete: consumer unknown', 'DELETE', `/channel/c/consumer/nobody/job/${gone}`, right, 404],
  ['delete: job unknown', 'DELETE', `${pull}/job/${gone}`, right, 404],
  // 7. Observability
  ['dead jobs by consumer', 'GET', '/dlq-status', {}, 200],
  ['jobs by status', 'GET', '/job-status', {}, 200],
  ['metrics', 'GET', '/metrics', {}, 200],
  ['status', 'GET', '/_status', {}, 200],
  // 8. Scheduled messages
  ['scheduled messages', 'GET', '/channel/c/scheduled-messages?status=101', {}, 200],
  ['scheduled messages of an unknown channel', 'GET', '/channel/nowhere/scheduled-messages', {}, 404],
  ['an unknown scheduled message', 'GET', '/channel/c/scheduled-message/m', {}, 404],
]

/** Returns what differs from the contract. */
function compare([, , path, , status]: Row, { status: given, headers, text }: WebhookAnswer): string[] {
  const type = headers.get('content-type') ?? ''
  // A path that does not belong to this API is answered in the words of another one.
  const isOfApi = path !== '/Channel/c'
  const differences = [
    [given !== status, `${given} ${text}`],
    [!/^[0-9a-v]{19}[0g]$/.test(headers.get('x-request-id') ?? ''), 'the request id is not an xid'],
    [status >= 400 && !/^[^\n]{5,300}$/.test(text), `no sentence: ${text}`],
    [status >= 400 && isOfApi && !type.startsWith('text/plain'), type],
    [[201, 202, 204].includes(status) && text !== '', `a body: ${text}`],
  ] as const
  return differences.flatMap(([isWrong, sentence]) => (isWrong ? [sentence] : []))
}

describeWebhookServers('the contract of the webhook API', {}, ({ server, send, setUp, broadcast }) => {
  it('every row has the status of the contract, and errors are one sentence of text', async () => {
    await setUp('c', 'pull', 'pull')
    await setUp('c', 'push', 'push')
    await broadcast('c', { 'X-Broker-Message-ID': 'taken' })
    const wrong: string[] = []
    for (const row of rows) {
      const [name, method, path, sent] = row
      const answer = await send(method, path, sent)
      for (const difference of compare(row, answer)) wrong.push(`${name}: ${difference}`)
    }
    expect(wrong).toEqual([])
  })

  it('an idle connection stays open for at least 120 s', async () => {
    expect(settingsTable['http.keep_alive_timeout'].default).toBeGreaterThanOrEqual(120_000)
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    const answer = new Promise<string>((resolve) => socket.once('data', (data) => resolve(data.toString())))
    socket.write(`GET /_status HTTP/1.1\r\nHost: ${hostname}\r\nConnection: keep-alive\r\n\r\n`)
    expect(await answer).toMatch(/keep-alive: timeout=1(2\d|3\d)\r\n/i)
    socket.destroy()
  })

  it('the three endpoints of dead jobs and the schema DLQStatus are in the OpenAPI document', async () => {
    const document = (await send('GET', '/openapi.json')).json
    expect(document.paths['/dlq-status'].get.responses['200'].content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/DLQStatus',
    })
    expect(Object.keys(document.components.schemas.DLQStatus.properties)).toEqual(['consumers'])
    const consumer = '/channel/{channelId}/consumer/{consumerId}'
    expect(document.paths[`${consumer}/dlq`].delete.operationId).toBe('purgeWebhookDeadJobs')
    expect(document.paths[`${consumer}/job/{jobId}`].delete.operationId).toBe('deleteWebhookDeadJob')
  })
})
