/**
 * Dead jobs are dead letters: every API for letters works for them. After each step the number of dead jobs
 * in `/dlq-status` is exact, and the state of the job follows its letter.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Receiver, startReceiver } from '../webhook-push/receivers.ts'
import { describeWebhookServers } from './webhook-server.ts'

const settings = {
  'webhooks.retries_max': 0,
  'webhooks.breaker_failures': 0,
  'webhooks.loopback_allowed': true,
  'webhooks.rational_delay': 200,
  'letters.campaign_interval': 20,
}

describeWebhookServers('dead jobs as letters', settings, ({ send, setUp, broadcast, until }) => {
  let receiver: Receiver
  let isBroken = true
  const payloads: string[] = []
  beforeAll(async () => {
    receiver = await startReceiver(({ body }, response) => {
      if (!isBroken) payloads.push(body.toString())
      response.writeHead(isBroken ? 503 : 200).end(isBroken ? 'too busy' : 'ok')
    })
  })
  afterAll(() => receiver.close())

  const call = async (method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { headers, body: JSON.stringify(body) }
    const answer = await send(method, path, sent)
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.json
  }
  const deadCount = async (channel: string) => {
    const { consumers } = (await send('GET', '/dlq-status')).json
    return consumers.find((each: { channelId: string }) => each.channelId === channel)?.deadCount
  }
  /** Broadcasts messages that die, and returns the name of the queue of their consumer. */
  const kill = async (channel: string, count: number): Promise<string> => {
    isBroken = true
    await setUp(channel, 'k', 'push', receiver.url)
    for (let n = 0; n < count; n++)
      await broadcast(channel, { 'X-Broker-Message-ID': `m${n}` }, `{"channel":"${channel}","n":${n}}`)
    await until(
      () => deadCount(channel),
      (dead) => dead === count,
    )
    return `webhook:${channel}:k`
  }
  const jobOf = async (channel: string, id: string) =>
    (await send('GET', `/channel/${channel}/message/${id}`)).json.Jobs[0]?.Status
  const isEach = (state: string) => (rows: { status: string }[]) =>
    rows.length > 0 && rows.every(({ status }) => status === state)
  const listLetters = async (queue: string) =>
    (await call('GET', `/api/v1/letters?queue=${queue}:dead`)).letters

  it('the management API lists, requeues, counts and purges dead jobs', async () => {
    const queue = await kill('j1', 4)
    const { data } = await call('GET', `/api/v1/dlq?topic=${queue}&order_dir=asc`)
    expect(data).toMatchObject({ total: 4, items: [{ reason: 'the_receiver_answered_503' }, {}, {}, {}] })
    expect((await call('GET', '/api/v1/dlq/stats')).data.total).toBeGreaterThanOrEqual(4)
    const find = async (id: string) =>
      (await call('GET', `/api/v1/letters?queue=${queue}:dead&key_text=${id}`)).letters[0]
    const [first, second] = [await find('m0'), await find('m1')]
    expect(data.items.map(({ id }: { id: string }) => id)).toEqual(
      expect.arrayContaining([first.id, second.id]),
    )
    isBroken = false
    const ids = [first.id]
    expect((await call('POST', '/api/v1/dlq/requeue', { ids })).data).toMatchObject({ requeued: ids })
    await until(
      () => jobOf('j1', 'm0'),
      (status) => status === 'DELIVERED',
    )
    expect(payloads).toContain('{"channel":"j1","n":0}')
    expect(await deadCount('j1')).toBe(3)
    expect((await call('POST', '/api/v1/dlq/requeue', { ids })).data).toMatchObject({
      requeued: [],
      skipped: [{ reason: 'not_dead_letter' }],
    })
    expect((await call('POST', '/api/v1/dlq/purge', { ids: [second.id] })).data).toMatchObject({ purged: 1 })
    expect(await deadCount('j1')).toBe(2)
    expect(await jobOf('j1', 'm1')).toBeUndefined()
    const restored = await call('POST', '/api/v1/letters/restore', { ids: [second.id], reason: 'a mistake' })
    expect(restored).toMatchObject({ restored: 1, letters: [{ id: second.id, is_done: true }] })
    expect([await deadCount('j1'), await jobOf('j1', 'm1')]).toEqual([3, 'DEAD'])
  })

  it('the API of topics lists, retries and deletes dead jobs, and retries all of them', async () => {
    const queue = await kill('j2', 4)
    const topic = encodeURIComponent(queue)
    const { messages, pagination } = await call('GET', `/api/v1/dlq/${topic}`)
    expect(pagination.total_count).toBe(4)
    expect(messages[0]).toMatchObject({ original_topic: queue, status: 'PENDING', payload: { n: 3 } })
    isBroken = false
    const path = (at: number) => `/api/v1/dlq/messages/${messages[at].id}`
    expect((await call('POST', `${path(0)}/retry`)).message.status).toBe('RETRYING')
    await until(
      () => call('GET', path(0)),
      ({ status }) => status === 'RESOLVED',
    )
    await call('DELETE', path(1))
    expect(await deadCount('j2')).toBe(2)
    expect(await call('POST', `/api/v1/dlq/${topic}/retry-all`)).toMatchObject({ retried_count: 2 })
    await until(
      () => deadCount('j2'),
      (dead) => dead === 0,
    )
    await until(
      () => listLetters(queue),
      (rows) => rows.every(({ status }: { status: string }) => status !== 'RETRYING'),
    )
    expect((await listLetters(queue)).map(({ status }: { status: string }) => status).sort()).toEqual([
      'DISCARDED',
      'RESOLVED',
      'RESOLVED',
      'RESOLVED',
    ])
  })

  it('a job that dies again is the same letter, and a campaign over its group resolves it', async () => {
    const queue = await kill('j3', 5)
    const [before] = await listLetters(queue)
    await call('POST', `/api/v1/letters/${before.id}/redrive`, { reason: 'try' })
    await until(
      () => call('GET', `/api/v1/letters/${before.id}`),
      (letter) => letter.retry_count === 1 && letter.status === 'PENDING',
    )
    expect([(await listLetters(queue)).length, await deadCount('j3')]).toEqual([5, 5])
    const { groups } = await call('GET', `/api/v1/groups?queue=${queue}:dead`)
    expect(groups).toMatchObject([{ count: 5 }])
    const { causes } = await call('GET', '/api/v1/causes')
    expect(causes.length).toBeGreaterThan(0)
    isBroken = false
    const selection = { action: 'redrive', filter: { group_id: groups[0].id } }
    expect(await call('POST', '/api/v1/campaigns/preview', selection)).toMatchObject({
      count: 5,
      targets: [{ queue, count: 5 }],
    })
    const campaign = { ...selection, name: 'receiver', reason: 'the receiver is back' }
    const { status, json } = await send('POST', '/api/v1/campaigns', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(campaign),
    })
    expect(status).toBeLessThan(300)
    const done = await until(
      () => call('GET', `/api/v1/campaigns/${json.id}`),
      ({ is_ended }) => is_ended,
    )
    expect(done).toMatchObject({ state: 'done', counts: { resolved: 5, failed: 0, unknown: 0 } })
    expect(isEach('RESOLVED')(await listLetters(queue))).toBe(true)
    expect([await deadCount('j3'), await jobOf('j3', 'm4')]).toEqual([0, 'DELIVERED'])
  })

  it('an edited dead job is delivered with its new payload, and every step has an audit row', async () => {
    const queue = await kill('j4', 1)
    const [letter] = await listLetters(queue)
    isBroken = false
    const edit = { payload: { text: '{"fixed":true}' } }
    await call('POST', `/api/v1/letters/${letter.id}/redrive`, { edit, reason: 'wrong amount' })
    await until(
      () => jobOf('j4', 'm0'),
      (status) => status === 'DELIVERED',
    )
    expect(payloads).toContain('{"fixed":true}')
    expect((await send('GET', '/channel/j4/message/m0')).json.Payload).toBe('{"channel":"j4","n":0}')
    const { entries } = await call('GET', `/api/v1/audit?target=${letter.id}`)
    expect(entries.map(({ action }: { action: string }) => action).sort()).toEqual([
      'letter.edit',
      'letter.redrive',
    ])
  })
})
