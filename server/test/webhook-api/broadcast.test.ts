import { expect, it } from 'vitest'
import { describeWebhookServers } from './webhook-server.ts'

const settings = { 'webhooks.schedule_interval': 50 }

describeWebhookServers('broadcasts', settings, ({ server, send, setUp, broadcast, tokens, until }) => {
  const message = async (channel: string, id: string) =>
    (await send('GET', `/channel/${channel}/message/${id}`)).json

  it('the checks of a broadcast have the order of the contract', async () => {
    await setUp('c1', 'k')
    const wrong = {
      'X-Broker-Channel-Token': 'x',
      'X-Broker-Producer-ID': 'x',
      'X-Broker-Producer-Token': 'x',
    }
    const late = { 'X-Broker-Scheduled-For': 'tomorrow' }
    const now = { 'X-Broker-Scheduled-For': new Date().toISOString() }
    expect((await broadcast('nowhere', wrong)).status).toBe(404)
    expect((await broadcast('c1', wrong, '')).status).toBe(403)
    const unknown = { 'X-Broker-Producer-ID': 'x', 'X-Broker-Producer-Token': 'x' }
    expect((await broadcast('c1', unknown, '')).status).toBe(401)
    expect((await broadcast('c1', { 'X-Broker-Producer-Token': 'x' }, '')).status).toBe(403)
    expect((await broadcast('c1', late, '')).text).toContain('empty')
    expect((await broadcast('c1', late)).status).toBe(400)
    expect((await broadcast('c1', now)).status).toBe(412)
    const id = { 'X-Broker-Message-ID': 'm 1' }
    const accepted = await broadcast('c1', id)
    expect([accepted.status, accepted.headers.get('location'), accepted.text]).toEqual([
      201,
      '/channel/c1/message/m%201',
      '',
    ])
    expect((await broadcast('c1', id)).status).toBe(409)
    const invalid = await send('POST', '/channel/c1/broadcast', {
      body: Uint8Array.of(0xff),
      headers: {
        'X-Broker-Channel-Token': 'c1-token',
        'X-Broker-Producer-ID': 'p',
        'X-Broker-Producer-Token': 'p-token',
      },
    })
    expect([invalid.status, invalid.text]).toEqual([400, 'the payload is not UTF-8 text'])
  })

  it('a message shows its payload, its stored headers, its producer and all its jobs', async () => {
    await setUp('c2', 'k1', 'pull', 'http://one.example/')
    await setUp('c2', 'k2', 'pull', 'http://two.example/')
    const headers = {
      'X-Broker-Message-ID': 'm',
      'X-Broker-Metadata-Headers': 'X-Tenant, X-Empty,x-missing,__proto__,constructor',
      'X-Tenant': 'müller',
      'X-Empty': '',
      'Content-Type': 'text/plain; charset=utf-8',
    }
    const sent = { ...headers, 'X-Tenant': Buffer.from('müller').toString('latin1') }
    expect((await broadcast('c2', sent, 'größe')).status).toBe(201)
    const shown = await until(
      () => message('c2', 'm'),
      ({ Status }) => Status === 'DISPATCHED',
    )
    const job = (endpoint: string, name: string) => ({
      ListenerEndpoint: endpoint,
      ListenerName: name,
      Status: 'QUEUED',
      StatusChangedAt: expect.any(String),
    })
    expect(shown).toMatchObject({
      ID: 'm',
      Payload: 'größe',
      ContentType: 'text/plain; charset=utf-8',
      ProducedBy: 'The producer',
      Jobs: [job('http://one.example/', 'k1'), job('http://two.example/', 'k2')],
      Headers: { 'X-Tenant': 'müller' },
    })
    expect((await send('GET', '/channel/c2/message/other')).status).toBe(404)
  })

  it('ids and tokens with any characters are the same in paths, forms and headers', async () => {
    const [channel, token, id] = ['kanal/ü', 'schlüssel €', 'nachricht 7/ö']
    const inHeader = (text: string) => Buffer.from(text).toString('latin1')
    await setUp('plain')
    await send('PUT', `/channel/${encodeURIComponent(channel)}`, { form: { token } })
    const pull = `/channel/${encodeURIComponent(channel)}/consumer/k`
    await send('PUT', pull, { form: { token, type: 'pull', callbackUrl: 'http://192.0.2.1/' } })
    const headers = {
      'X-Broker-Channel-Token': inHeader(token),
      'X-Broker-Producer-ID': 'p',
      'X-Broker-Producer-Token': 'p-token',
      'X-Broker-Message-ID': inHeader(id),
    }
    const accepted = await send('POST', `/channel/${encodeURIComponent(channel)}/broadcast`, {
      body: 'x',
      headers,
    })
    const path = `/channel/${encodeURIComponent(channel)}/message/${encodeURIComponent(id)}`
    expect([accepted.status, accepted.headers.get('location')]).toEqual([201, path])
    expect((await send('GET', path)).json).toMatchObject({ ID: id })
    const tokens = { 'X-Broker-Channel-Token': inHeader(token), 'X-Broker-Consumer-Token': inHeader(token) }
    await until(
      async () => (await send('GET', `${pull}/queued-jobs`, { headers: tokens })).json.Result,
      ([job]) => job?.Message.MessageID === id,
    )
  })

  it('messages are listed by status and counted without a scan', async () => {
    await setUp('c3')
    expect((await send('GET', '/channel/c3/messages-status')).json).toEqual({ counts: {} })
    for (const id of ['a', 'b', 'c']) await broadcast('c3', { 'X-Broker-Message-ID': id })
    const status = await until(
      async () => (await send('GET', '/channel/c3/messages-status')).json,
      ({ counts }) => counts.DISPATCHED?.Count === 3,
    )
    expect(status).toEqual({
      counts: { DISPATCHED: { Count: 3, Links: { messages: '/channel/c3/messages?status=102' } } },
    })
    const listed = (await send('GET', '/channel/c3/messages?status=101&status=102')).json
    expect(listed.Result).toEqual(['c', 'b', 'a'].map((id) => `/channel/c3/message/${id}`))
    expect((await send('GET', '/channel/c3/messages?status=101')).json.Result).toEqual([])
    expect((await send('GET', '/channel/nowhere/messages')).status).toBe(404)
  })

  it('a message for a channel without consumers is dispatched without jobs, and a default id is an xid', async () => {
    await setUp('c4')
    const accepted = await broadcast('c4')
    const id = accepted.headers.get('location')?.split('/').at(-1) ?? ''
    expect(id).toMatch(/^[0-9a-v]{19}[0g]$/)
    const shown = await until(
      () => message('c4', id),
      ({ Status }) => Status === 'DISPATCHED',
    )
    expect(shown.Jobs).toEqual([])
  })

  it('a higher priority goes first, the absolute value counts, and other texts count as 0', async () => {
    await setUp('c5', 'k', 'pull')
    for (const [id, priority] of [
      ['low', 'x'],
      ['high', '-9'],
      ['mid', '3'],
    ] as const) {
      await broadcast('c5', { 'X-Broker-Message-ID': id, 'X-Broker-Message-Priority': priority })
    }
    const read = async () =>
      (await send('GET', '/channel/c5/consumer/k/queued-jobs', { headers: tokens('c5', 'k') })).json.Result
    const jobs = await until(read, ({ length }) => length === 3)
    expect(jobs.map((job: { Message: { MessageID: string } }) => job.Message.MessageID)).toEqual([
      'high',
      'mid',
      'low',
    ])
    expect(jobs.map((job: { Priority: number }) => job.Priority)).toEqual([9, 3, 0])
  })

  it('a scheduled message becomes a regular one with the same id when it is due', async () => {
    await setUp('c6', 'k', 'pull')
    const at = '2031-01-01T12:00:00+02:00'
    const headers = {
      'X-Broker-Message-ID': 's',
      'X-Broker-Scheduled-For': at,
      'X-Broker-Message-Priority': '4',
    }
    await server.setClock({ now: '2031-01-01T09:00:00Z' })
    const accepted = await broadcast('c6', headers)
    expect([accepted.status, accepted.headers.get('location')]).toEqual([
      201,
      '/channel/c6/scheduled-message/s',
    ])
    expect((await broadcast('c6', headers)).status).toBe(409)
    const scheduled = (await send('GET', '/channel/c6/scheduled-message/s')).json
    expect(scheduled).toMatchObject({
      messageId: 's',
      contentType: 'application/json',
      priority: 4,
      producedBy: 'p',
      dispatchSchedule: '2031-01-01T10:00:00.000000Z',
      dispatchedAt: null,
      status: 'SCHEDULED',
      payload: '{"a":1}',
      headers: {},
    })
    expect((await send('GET', '/channel/c6/scheduled-messages?status=101')).json).toMatchObject({
      result: ['/channel/c6/scheduled-message/s'],
    })
    expect((await send('GET', '/channel/c6/messages-status')).json).toEqual({
      counts: {
        SCHEDULED_SCHEDULED: { Count: 1, Links: { messages: '/channel/c6/scheduled-messages?status=101' } },
      },
      next_scheduled_message_at: '2031-01-01T10:00:00.000000Z',
    })
    await server.setClock({ now: '2031-01-01T10:00:00Z' })
    const shown = await until(
      () => send('GET', '/channel/c6/message/s'),
      ({ json }) => json?.Jobs?.length === 1,
    )
    expect(shown.json).toMatchObject({ ID: 's', Payload: '{"a":1}' })
    expect((await send('GET', '/channel/c6/scheduled-message/s')).json.status).toBe('DISPATCHED')
    await server.setClock({ resume: true })
  })
})
