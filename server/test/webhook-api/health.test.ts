/** Consumers that fail: automatic disabling, the breaker and Retry-After, on servers whose clock is set. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Receiver, startReceiver } from '../webhook-push/receivers.ts'
import { describeWebhookServers } from './webhook-server.ts'

const settings = {
  'webhooks.retries_max': 1,
  'webhooks.retry_delays': ['1s'],
  'webhooks.breaker_failures': 3,
  'webhooks.breaker_hold': 10_000,
  'webhooks.retry_after_max': 600_000,
  'webhooks.loopback_allowed': true,
  'webhooks.rational_delay': 200,
}
const noonText = '2030-11-15T12:00:00'

describeWebhookServers('consumers that fail', settings, ({ server, send, setUp, broadcast, until }) => {
  let receiver: Receiver
  /** The answers to pushes by path: a status, and a header Retry-After. */
  const answers = new Map<string, readonly [status: number, retryAfter?: string]>()
  const pushes: string[] = []
  beforeAll(async () => {
    receiver = await startReceiver(({ path }, response) => {
      pushes.push(path)
      const [status, retryAfter] = answers.get(path) ?? [200]
      response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end()
    })
  })
  afterAll(() => receiver.close())

  const countPushes = (path: string) => pushes.filter((each) => each === path).length
  const untilPushed = (path: string, count: number) =>
    until(
      async () => countPushes(path),
      (pushed) => pushed === count,
    )
  const read = async (channel: string) => (await send('GET', `/api/v1/webhooks/${channel}/k`)).json
  /** A job of another consumer is pushed after the jobs that were due before it. */
  const pushElsewhere = async () => {
    const pushed = countPushes('/elsewhere')
    await setUp('elsewhere', 'k', 'push', `${receiver.url}/elsewhere`)
    await broadcast('elsewhere')
    await untilPushed('/elsewhere', pushed + 1)
  }
  const patch = (channel: string, body: object) =>
    send('PATCH', `/api/v1/webhooks/${channel}/k`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ settings: body }),
    })

  it('a consumer with nothing but failures is disabled, with an audit row and a log line, until it is enabled', async () => {
    await server.setClock({ now: `${noonText}Z` })
    answers.set('/h1', [410])
    await setUp('h1', 'k', 'push', `${receiver.url}/h1`)
    await patch('h1', { disable_after: '1h', breaker_failures_max: 0 })
    await broadcast('h1')
    await until(
      () => read('h1'),
      ({ counts, failing_since: since }) => counts.dead === 1 && since === `${noonText}.000000Z`,
    )
    // One failure and then silence is not a time of failures.
    await server.setClock({ advance: '2h' })
    await pushElsewhere()
    expect(await read('h1')).toMatchObject({ status: 'active' })
    await broadcast('h1')
    const disabled = await until(
      () => read('h1'),
      ({ status }) => status === 'disabled',
    )
    expect(disabled.disabled).toMatchObject({ reason: 'all attempts failed for too long' })
    const audit = await send('GET', '/api/v1/audit?action=webhook.consumer.disable&target=h1%2Fk')
    expect(audit.json.entries).toMatchObject([{ actor: 'system' }])
    const logged = server.lines.filter(({ msg }) => String(msg).startsWith('a webhook consumer was disabled'))
    expect(logged).toMatchObject([{ channel: 'h1', consumer: 'k' }])
    expect((await send('GET', '/metrics')).text).toContain('redrive_webhook_consumers{status="disabled"} 1')
    answers.delete('/h1')
    await broadcast('h1')
    await until(
      () => read('h1'),
      ({ counts }) => counts.queued === 1,
    )
    expect(countPushes('/h1')).toBe(2)
    await send('POST', '/api/v1/webhooks/h1/k/enable')
    await until(
      () => read('h1'),
      ({ counts, status }) => counts.delivered === 1 && status === 'active',
    )
    await server.setClock({ resume: true })
  })

  it('an open breaker is shown with its reason and its next probe, and is logged', async () => {
    await server.setClock({ now: `${noonText}Z` })
    answers.set('/h2', [500])
    await setUp('h2', 'k', 'push', `${receiver.url}/h2`)
    for (let n = 0; n < 3; n++) await broadcast('h2', { 'X-Broker-Message-ID': `m${n}` })
    const open = await until(
      () => read('h2'),
      ({ breaker, counts }) => breaker.state === 'open' && counts.queued === 3,
    )
    expect(open).toMatchObject({
      status: 'held',
      breaker: {
        reason: '3 attempts in a row failed',
        probe_at: '2030-11-15T12:00:10.000000Z',
        failed_probes: 0,
      },
      counts: { queued: 3, dead: 0 },
    })
    answers.delete('/h2')
    await server.setClock({ advance: '11s' })
    await until(
      () => read('h2'),
      ({ counts, breaker }) => counts.delivered === 3 && breaker.state === 'closed',
    )
    const logged = server.lines.filter(({ channel }) => channel === 'h2').map(({ msg }) => String(msg))
    expect(logged).toEqual([
      'the circuit breaker of a webhook consumer opened: its jobs wait',
      'the circuit breaker of a webhook consumer closed',
    ])
    await server.setClock({ resume: true })
  })

  it.each([
    ['in seconds', '300', '299s'],
    ['as an HTTP date', 'Fri, 15 Nov 2030 12:05:00 GMT', '299s'],
    ['beyond the bound', '86400', '599s'],
    ['as a date beyond the bound', 'Sat, 16 Nov 2030 12:00:00 GMT', '599s'],
    ['that is not readable', 'soon', '999ms'],
    ['in the past', 'Fri, 15 Nov 2030 11:00:00 GMT', '999ms'],
  ])('a Retry-After %s is honoured within the bound', async (name, retryAfter, justBefore) => {
    await server.setClock({ now: `${noonText}Z` })
    const channel = `retry-${name.replaceAll(' ', '-')}`
    const path = `/${channel}`
    answers.set(path, [503, retryAfter])
    await setUp(channel, 'k', 'push', receiver.url + path)
    await broadcast(channel)
    await until(
      () => read(channel),
      ({ counts }) => countPushes(path) === 1 && counts.queued === 1 && counts.inflight === 0,
    )
    answers.delete(path)
    await server.setClock({ advance: justBefore })
    await pushElsewhere()
    expect(countPushes(path)).toBe(1)
    await server.setClock({ advance: '1s' })
    await untilPushed(path, 2)
    await until(
      () => read(channel),
      ({ counts }) => counts.delivered === 1,
    )
    await server.setClock({ resume: true })
  })
})
