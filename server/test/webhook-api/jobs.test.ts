import { expect, it } from 'vitest'
import { describeWebhookServers } from './webhook-server.ts'

// Pushes to the documentation network are refused at once, so each attempt of a push job fails.
const settings = {
  'webhooks.retries_max': 2,
  'webhooks.breaker_failures': 0,
  'webhooks.retry_delays': ['10ms'],
  'webhooks.rational_delay': 200,
}

describeWebhookServers('jobs', settings, ({ server, send, setUp, broadcast, tokens, until }) => {
  const jobPath = (channel: string, consumer: string, job: string) =>
    `/channel/${channel}/consumer/${consumer}/job/${job}`
  const queued = async (channel: string, consumer: string, count = 1) =>
    until(
      async () =>
        (
          await send('GET', `/channel/${channel}/consumer/${consumer}/queued-jobs`, {
            headers: tokens(channel, consumer),
          })
        ).json.Result as { ID: string; IncrementalTimeout: number }[],
      ({ length }) => length === count,
    )
  const move = async (channel: string, consumer: string, job: string, body: object | string) =>
    (
      await send('POST', jobPath(channel, consumer, job), {
        headers: tokens(channel, consumer),
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
    ).status
  const deadCount = async (channel: string, consumer: string) =>
    (await send('GET', '/dlq-status')).json.consumers.find(
      (each: { channelId: string; consumerId: string }) =>
        each.channelId === channel && each.consumerId === consumer,
    )?.deadCount
  const pullJob = async (channel: string) => {
    await setUp(channel, 'k', 'pull')
    await broadcast(channel, { 'X-Broker-Message-ID': 'm' })
    const [job] = await queued(channel, 'k')
    return job?.ID ?? ''
  }

  it('the checks of a pull consumer have the order of the contract', async () => {
    const id = await pullJob('c1')
    await setUp('c1', 'pushed', 'push')
    await setUp('c1', 'other', 'pull')
    const get = async (path: string, headers: Record<string, string>) =>
      (await send('GET', path, { headers })).status
    expect(await get(jobPath('nowhere', 'k', id), {})).toBe(404)
    expect(await get(jobPath('c1', 'nobody', id), { 'X-Broker-Channel-Token': 'x' })).toBe(403)
    expect(await get(jobPath('c1', 'nobody', id), tokens('c1', 'x'))).toBe(401)
    expect(await get(jobPath('c1', 'k', id), tokens('c1', 'x'))).toBe(403)
    expect(await get(jobPath('c1', 'pushed', id), tokens('c1', 'pushed'))).toBe(412)
    expect(await get(jobPath('c1', 'k', 'unknown'), tokens('c1', 'k'))).toBe(404)
    expect(await get(jobPath('c1', 'k', '9m4e2mr0ui3e8a215n4g'), tokens('c1', 'k'))).toBe(404)
    expect(await get(jobPath('c1', 'other', id), tokens('c1', 'other'))).toBe(401)
    const shown = await send('GET', jobPath('c1', 'k', id), { headers: tokens('c1', 'k') })
    expect(shown.json).toMatchObject({
      ListenerName: 'k',
      Status: 'QUEUED',
      MessageURL: '/channel/c1/message/m',
      ChannelURL: '/channel/c1',
      ConsumerURL: '/channel/c1/consumer/k',
      ProducerURL: '/producer/p',
      JobRequeueURL: '',
    })
    const limit = (value: string) =>
      get(`/channel/c1/consumer/k/queued-jobs?limit=${value}`, tokens('c1', 'k'))
    expect([await limit('1'), await limit('1000'), await limit('-1'), await limit('x')]).toEqual([
      200, 200, 400, 400,
    ])
  })

  it('a pull consumer changes a job only in the allowed ways', async () => {
    const id = await pullJob('c2')
    const to = (body: object | string) => move('c2', 'k', id, body)
    expect([await to('{'), await to('[]'), await to({}), await to({ NextState: 'GONE' })]).toEqual([
      400, 400, 400, 400,
    ])
    expect(await to({ NextState: 'DELIVERED' })).toBe(400)
    expect(await to({ NextState: 'DEAD', IncrementalTimeout: 5 })).toBe(400)
    expect(await to({ NextState: 'INFLIGHT', IncrementalTimeout: -1 })).toBe(400)
    expect(await to({ NextState: 'QUEUED' })).toBe(202)
    expect(await to({ NextState: 'INFLIGHT', IncrementalTimeout: 10 })).toBe(202)
    expect(await to({ NextState: 'INFLIGHT' })).toBe(202)
    expect(await to({ NextState: 'INFLIGHT', IncrementalTimeout: 1 })).toBe(400)
    expect(await to({ NextState: 'QUEUED' })).toBe(400)
    expect(await to({ NextState: 'DELIVERED' })).toBe(202)
    for (const NextState of ['QUEUED', 'INFLIGHT', 'DEAD']) expect(await to({ NextState })).toBe(400)
    expect(await to({ NextState: 'DELIVERED' })).toBe(202)
    const status = (await send('GET', '/job-status')).json
    expect(status.c2.k).toMatchObject([{ status: 1003, count: 1 }])
  })

  it('a dead pull job can be taken, requeued and, once its retries are used, deleted', async () => {
    const id = await pullJob('c3')
    const headers = tokens('c3', 'k')
    await move('c3', 'k', id, { NextState: 'INFLIGHT' })
    await move('c3', 'k', id, { NextState: 'DEAD' })
    expect(await deadCount('c3', 'k')).toBe(1)
    // It died in its first attempt: the counter is 0, and two retries are allowed.
    expect((await send('DELETE', jobPath('c3', 'k', id), { headers })).status).toBe(404)
    expect(await move('c3', 'k', id, { NextState: 'INFLIGHT' })).toBe(202)
    expect(await deadCount('c3', 'k')).toBe(0)
    expect(await move('c3', 'k', id, { NextState: 'DEAD' })).toBe(202)
    const listed = (await send('GET', '/channel/c3/consumer/k/dlq')).json
    const requeueUrl = `${jobPath('c3', 'k', id)}/requeue-dead-job`
    expect(listed.DeadJobs).toMatchObject([
      { Status: 'DEAD', MessageURL: '/channel/c3/message/m', JobRequeueURL: requeueUrl },
    ])
    expect((await send('POST', requeueUrl, { headers })).status).toBe(202)
    expect((await send('POST', requeueUrl, { headers })).status).toBe(400)
    expect(await queued('c3', 'k')).toMatchObject([{ ID: id }])
    for (const NextState of ['INFLIGHT', 'DEAD', 'INFLIGHT', 'DEAD', 'INFLIGHT', 'DEAD'])
      await move('c3', 'k', id, { NextState })
    expect((await send('DELETE', jobPath('c3', 'k', id), { headers })).status).toBe(204)
    expect((await send('DELETE', jobPath('c3', 'k', id), { headers })).status).toBe(404)
    expect(await deadCount('c3', 'k')).toBe(0)
    expect((await send('GET', jobPath('c3', 'k', id), { headers })).status).toBe(404)
  })

  it('a queued job that was dead before shows the payload and the headers of its message', async () => {
    await setUp('c3b', 'k', 'pull')
    const given = { 'X-Broker-Metadata-Headers': 'X-Order', 'X-Order': '7' }
    await broadcast('c3b', given, '{"order":7}')
    const message = { Payload: '{"order":7}', Headers: { 'X-Order': '7' } }
    const [job] = await queued('c3b', 'k')
    expect(job).toMatchObject({ Message: message })
    const id = job?.ID ?? ''
    await move('c3b', 'k', id, { NextState: 'INFLIGHT' })
    await move('c3b', 'k', id, { NextState: 'DEAD' })
    const requeueUrl = `${jobPath('c3b', 'k', id)}/requeue-dead-job`
    expect((await send('POST', requeueUrl, { headers: tokens('c3b', 'k') })).status).toBe(202)
    expect(await queued('c3b', 'k')).toMatchObject([{ ID: id, Message: message }])
  })

  it('a list of queued jobs ends with the job whose payload reaches 16 MiB', async () => {
    await setUp('c3c', 'k', 'pull')
    // JSON writes these characters with six characters or with two bytes each.
    const payloads = ['\u0001', 'ü', 'x'].map((character) => character.repeat(6 * 2 ** 20))
    for (const [index, payload] of payloads.entries()) {
      const sent = { 'X-Broker-Message-ID': `m${index}`, 'X-Broker-Message-Priority': String(9 - index) }
      expect((await broadcast('c3c', sent, payload)).status).toBe(201)
    }
    const list = async (count: number) =>
      (await queued('c3c', 'k', count)) as unknown as { ID: string; Message: { Payload: string } }[]
    const first = await list(2)
    expect(first.map(({ Message }) => Message.Payload === payloads[0])).toEqual([true, false])
    expect(first[1]?.Message.Payload === payloads[1]).toBe(true)
    for (const NextState of ['INFLIGHT', 'DELIVERED'])
      await move('c3c', 'k', first[0]?.ID ?? '', { NextState })
    expect((await list(2)).map(({ Message }) => payloads.indexOf(Message.Payload))).toEqual([1, 2])
    const { json } = await send('GET', '/channel/c3c/message/m0')
    expect(json.Payload === payloads[0]).toBe(true)
  })

  it('a pull job that is not answered in time is queued again, and dies when its retries are used', async () => {
    const id = await pullJob('c4')
    for (const expected of ['QUEUED', 'DEAD']) {
      await move('c4', 'k', id, { NextState: 'INFLIGHT', IncrementalTimeout: 100 })
      await server.setClock({ advance: '129s' })
      const still = await send('GET', jobPath('c4', 'k', id), { headers: tokens('c4', 'k') })
      expect(still.json.Status).toBe('INFLIGHT')
      await server.setClock({ advance: '10s' })
      const moved = await send('GET', jobPath('c4', 'k', id), { headers: tokens('c4', 'k') })
      expect(moved.json.Status).toBe(expected)
      if (expected === 'QUEUED') expect(await queued('c4', 'k')).toMatchObject([{ IncrementalTimeout: 100 }])
    }
    expect((await send('DELETE', jobPath('c4', 'k', id), { headers: tokens('c4', 'k') })).status).toBe(204)
    await server.setClock({ resume: true })
  })

  it('push jobs that fail die after their retries, and are requeued and purged with exact counts', async () => {
    await setUp('c5', 'k')
    for (let n = 0; n < 30; n++) await broadcast('c5', { 'X-Broker-Message-ID': `m${n}` })
    const count = () => deadCount('c5', 'k')
    await until(count, (n) => n === 30)
    const metrics = (await send('GET', '/metrics')).text
    expect(metrics).toContain('dead_job_count{channel="c5",consumer="k"} 30')
    const first = (await send('GET', '/channel/c5/consumer/k/dlq')).json
    const second = (await send('GET', first.Pages.next)).json
    expect([first.DeadJobs.length, second.DeadJobs.length]).toEqual([25, 5])
    expect((await send('GET', second.Pages.previous)).json.DeadJobs).toEqual(first.DeadJobs)
    const requeue = (form: Record<string, string>) => send('POST', '/channel/c5/consumer/k/dlq', { form })
    expect((await requeue({ requeue: 'wrong' })).status).toBe(400)
    expect((await send('POST', '/channel/c5/consumer/k/dlq', { body: 'requeue=k-token' })).status).toBe(415)
    expect((await requeue({ requeue: 'k-token' })).status).toBe(202)
    // They fail again, and return to the same letters.
    await until(count, (n) => n === 30)
    const headers = tokens('c5', 'k')
    const purge = (path: string, sent: Record<string, string>) => send('DELETE', path, { headers: sent })
    expect((await purge('/channel/c5/consumer/nobody/dlq', headers)).status).toBe(404)
    expect((await purge('/channel/c5/consumer/k/dlq', tokens('c5', 'x'))).status).toBe(403)
    expect((await purge('/channel/c5/consumer/k/dlq', headers)).json).toEqual({ deletedCount: 30 })
    expect((await purge('/channel/c5/consumer/k/dlq', headers)).json).toEqual({ deletedCount: 0 })
    expect(await count()).toBe(0)
    expect((await send('GET', '/channel/c5/consumer/k/dlq')).json).toEqual({ DeadJobs: [], Pages: {} })
  })

  it('the status of the server is shown without tokens', async () => {
    const status = await send('GET', '/_status')
    expect(status.json).toEqual({ SeedData: { Producers: [], Channels: [], Consumers: [] }, AppStatus: 3 })
  })
})
