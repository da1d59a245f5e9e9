/** `/api/v1/webhooks`: consumers, their delivery settings, attempts and secrets. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verifyWebhook } from '../../../client/src/index.ts'
import { type ReceivedPush, type Receiver, startReceiver } from '../webhook-push/receivers.ts'
import { describeWebhookServers } from './webhook-server.ts'

const settings = {
  'webhooks.retries_max': 0,
  'webhooks.breaker_failures': 0,
  'webhooks.loopback_allowed': true,
  'webhooks.rational_delay': 200,
}

describeWebhookServers('the API of webhook consumers', settings, ({ send, setUp, broadcast, until }) => {
  let receiver: Receiver
  const received: ReceivedPush[] = []
  beforeAll(async () => {
    receiver = await startReceiver((push, response) => {
      received.push(push)
      if (push.path === '/fail') response.writeHead(503, { 'content-type': 'text/plain' }).end('too busy')
      else response.end('thanks')
    })
  })
  afterAll(() => receiver.close())

  const call = (method: string, path: string, body?: object) =>
    send(method, `/api/v1/webhooks${path}`, {
      ...(body !== undefined && {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    })
  const audit = async (action: string, target: string) =>
    (await send('GET', `/api/v1/audit?action=${action}&target=${encodeURIComponent(target)}`)).json.entries

  it('the list and one consumer show counts, breaker, settings and figures', async () => {
    await setUp('v1', 'ok', 'push', `${receiver.url}/ok`)
    await setUp('v1', 'fail', 'push', `${receiver.url}/fail`)
    await setUp('v1', 'pull', 'pull')
    for (let n = 0; n < 3; n++) await broadcast('v1', { 'X-Broker-Message-ID': `m${n}` })
    const read = async (consumer: string) => (await call('GET', `/v1/${consumer}`)).json
    const figures = (delivered: number, failed: number) => (view: { recent: Record<string, number> }) =>
      view.recent.delivered === delivered && view.recent.failed === failed
    expect(await until(() => read('ok'), figures(3, 0))).toMatchObject({
      channel_id: 'v1',
      channel_name: 'v1',
      consumer_id: 'ok',
      consumer_type: 'push',
      callback_url: `${receiver.url}/ok`,
      queue: 'webhook:v1:ok',
      dead_queue: 'webhook:v1:ok:dead',
      status: 'active',
      breaker: { state: 'closed', opened_at: null },
      failing_since: null,
      paused: null,
      disabled: null,
      settings: { parallel_max: null, pushes_per_second_max: null, timeout: null },
      counts: { queued: 0, inflight: 0, delivered: 3, dead: 0 },
      recent: { minutes: 15, success_ratio: 1, latency_p50_ms: expect.any(Number) },
    })
    expect(await until(() => read('fail'), figures(0, 3))).toMatchObject({
      failing_since: expect.any(String),
      counts: { delivered: 0, dead: 3 },
      recent: { success_ratio: 0 },
    })
    const listed = (await call('GET', '?channel=v1&limit=2')).json
    expect(listed.consumers.map((each: { consumer_id: string }) => each.consumer_id)).toEqual(['ok', 'fail'])
    const rest = (await call('GET', `?channel=v1&limit=2&cursor=${listed.next_cursor}`)).json
    expect(rest).toMatchObject({
      consumers: [{ consumer_id: 'pull', counts: { queued: 3 } }],
      next_cursor: null,
    })
    expect((await call('GET', '/v1/nobody')).status).toBe(404)
    expect((await call('GET', '?cursor=nonsense')).status).toBe(400)
  })

  it('settings are changed one by one, null restores the default, and each change has an audit row', async () => {
    await setUp('v2', 'k', 'push', receiver.url)
    const first = await call('PATCH', '/v2/k', {
      settings: { parallel_max: 3, pushes_per_second_max: 0.5, timeout: '2s', permanent_statuses: [404] },
      reason: 'slow receiver',
    })
    expect(first.json.settings).toEqual({
      parallel_max: 3,
      pushes_per_second_max: 0.5,
      timeout: '2s',
      permanent_statuses: [404],
      breaker_failures_max: null,
      disable_after: null,
    })
    const second = await call('PATCH', '/v2/k', { settings: { timeout: null, disable_after: '1h0m0s' } })
    expect(second.json.settings).toMatchObject({ parallel_max: 3, timeout: null, disable_after: '1h0m0s' })
    expect((await call('PATCH', '/v2/k', { settings: { parallel_max: 0 } })).status).toBe(400)
    expect((await call('PATCH', '/v2/k', { settings: { unknown: 1 } })).status).toBe(400)
    expect((await call('PATCH', '/v2/nobody', { settings: {} })).status).toBe(404)
    expect(
      (await audit('webhook.consumer.update', 'v2/k')).map((row: { reason: string }) => row.reason),
    ).toEqual(['', 'slow receiver'])
  })

  it('a paused consumer gets no pushes until it is resumed', async () => {
    await setUp('v3', 'k', 'push', `${receiver.url}/paused`)
    const paused = await call('POST', '/v3/k/pause', { reason: 'maintenance' })
    expect(paused.json).toMatchObject({ status: 'paused', paused: { reason: 'maintenance' } })
    await broadcast('v3')
    const counts = async () => (await call('GET', '/v3/k')).json.counts
    await until(counts, ({ queued }) => queued === 1)
    expect((await call('POST', '/v3/k/resume')).json).toMatchObject({ status: 'active', paused: null })
    await until(counts, ({ delivered }) => delivered === 1)
    expect((await call('POST', '/v3/k/enable')).json).toMatchObject({ disabled: null })
    expect(await audit('webhook.consumer.pause', 'v3/k')).toMatchObject([{ reason: 'maintenance' }])
    expect(await audit('webhook.consumer.resume', 'v3/k')).toHaveLength(1)
    expect((await call('POST', '/v3/nobody/pause')).status).toBe(404)
  })

  it('attempts of a consumer and of a message show what the receiver answered', async () => {
    await setUp('v4', 'a', 'push', `${receiver.url}/fail`)
    await setUp('v4', 'b', 'push', `${receiver.url}/ok`)
    for (const id of ['m1', 'm2']) await broadcast('v4', { 'X-Broker-Message-ID': id })
    const attempts = async (path: string) => (await call('GET', path)).json.attempts
    const own = await until(
      () => attempts('/v4/a/attempts'),
      ({ length }) => length === 2,
    )
    expect(own[0]).toMatchObject({
      attempt: 1,
      is_delivered: false,
      http_status: 503,
      failure_kind: 'status',
      response: { text: 'too busy' },
    })
    const ofMessage = await until(
      () => attempts('/v4/messages/m1/attempts'),
      ({ length }) => length === 2,
    )
    const sorted = ofMessage.map((each: { http_status: number }) => each.http_status).sort()
    expect(sorted).toEqual([200, 503])
    const page = (await call('GET', '/v4/a/attempts?limit=1')).json
    const next = (await call('GET', `/v4/a/attempts?limit=1&cursor=${page.next_cursor}`)).json
    expect(next.attempts[0].job_id).not.toBe(page.attempts[0].job_id)
    expect((await call('GET', '/v4/messages/nothing/attempts')).status).toBe(404)
    expect((await call('GET', '/v4/nobody/attempts')).status).toBe(404)
  })

  it('a test push is signed with the secret, and a rotation signs with both secrets', async () => {
    await setUp('v5', 'k', 'push', `${receiver.url}/signed`)
    const { secret } = (await call('GET', '/v5/k/secret')).json
    expect(secret).toMatch(/^whsec_/)
    expect((await call('GET', '/v5/k/secret')).json.secret).toBe(secret)
    const sendTest = async () => {
      received.length = 0
      const attempt = await call('POST', '/v5/k/test', { text: '{"a":1}', reason: 'try' })
      expect(attempt.json).toMatchObject({
        is_delivered: true,
        http_status: 200,
        response: { text: 'thanks' },
      })
      const push = received.find(({ path }) => path === '/signed') as ReceivedPush
      return { push, headers: push.headers as Record<string, string> }
    }
    const first = await sendTest()
    expect(first.push.body.toString()).toBe('{"a":1}')
    await verifyWebhook(secret, first.headers, first.push.body)
    const rotated = await call('POST', '/v5/k/secret/rotate', { reason: 'leaked' })
    expect(rotated.json.secret).not.toBe(secret)
    expect(rotated.json.previous_valid_until).toEqual(expect.any(String))
    const second = await sendTest()
    for (const valid of [secret, rotated.json.secret])
      await verifyWebhook(valid, second.headers, second.push.body)
    await call('POST', '/v5/k/secret/rotate', { overlap: '0s' })
    const third = await sendTest()
    await expect(verifyWebhook(secret, third.headers, third.push.body)).rejects.toThrow()
    const rows = JSON.stringify(await audit('webhook.secret.rotate', 'v5/k'))
    expect(rows).toContain('leaked')
    expect(rows).not.toContain('whsec_')
    await setUp('v5', 'pulled', 'pull')
    expect((await call('POST', '/v5/pulled/test')).status).toBe(409)
    expect((await call('POST', '/v5/nobody/test')).status).toBe(404)
  })
})
