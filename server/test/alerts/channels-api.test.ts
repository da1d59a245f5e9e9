/** `/api/v1/alerts/channels`, with channels of the configuration and of the API. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { formatAlertChannels, parseAlertChannels } from '../../src/config/alert-channels.ts'
import { describeServer } from '../http/store-server.ts'
import { type ReceivedPush, type Receiver, startReceiver } from '../webhook-push/receivers.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const configured = parseAlertChannels(
  JSON.stringify([{ name: 'fixed', kind: 'telegram', bot_token: 'file:/nowhere/token', chat_id: -5 }]),
)

for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
  const settings = { 'webhooks.loopback_allowed': true, 'alerts.channels': configured }
  describeServer(`the channels of alerts (${store})`, store, settings, (server) => {
    let receiver: Receiver
    let received: ReceivedPush[] = []
    let status = 200
    beforeAll(async () => {
      receiver = await startReceiver((push, response) => {
        received.push(push)
        response.writeHead(status).end('the answer to Bearer hidden-token-1')
      })
    })
    afterAll(() => receiver.close())
    const path = '/api/v1/alerts/channels'
    const request = (method: string, name: string, body?: object) =>
      server.request(method, `${path}/${name}`, body)
    const put = (name: string, kind: string, given: object) => request('PUT', name, { kind, settings: given })

    it('a channel is created, listed and deleted, and its secrets are never shown', async () => {
      const created = await put('hook', 'webhook', { url: `${receiver.url}/a`, secret })
      expect(created).toMatchObject({
        status: 200,
        body: {
          name: 'hook',
          namespace: '_system',
          kind: 'webhook',
          source: 'api',
          settings: { url: `${receiver.url}/a` },
          secrets_set: ['secret'],
        },
      })
      await put('chat', 'slack', { url: `${receiver.url}/services/hidden-token-1` })
      const texts = [
        created,
        await server.request('GET', path),
        await request('GET', 'chat'),
        await server.request('GET', '/api/v1/audit?limit=100'),
      ].map((answer) => JSON.stringify(answer.body))
      for (const text of texts) {
        expect(text).not.toContain(secret)
        expect(text).not.toContain('hidden-token-1')
      }
      const { body } = await server.request('GET', path)
      expect(body.channels.map(({ name }: { name: string }) => name)).toEqual(['chat', 'fixed', 'hook'])
      expect(await request('DELETE', 'chat', {})).toMatchObject({ status: 200, body: { deleted: true } })
      expect(await request('GET', 'chat')).toMatchObject({
        status: 404,
        body: { error: { code: 'ALERT_CHANNEL_NOT_FOUND' } },
      })
      const audit = await server.request('GET', '/api/v1/audit?target=alert-channel%2Fchat')
      expect(audit.body.entries.map(({ action }: { action: string }) => action)).toEqual([
        'alert-channel.delete',
        'alert-channel.create',
      ])
    })

    it('a secret stays if it is left out, but not if the address changes', async () => {
      await put('kept', 'webhook', { url: `${receiver.url}/a`, secret })
      expect(await put('kept', 'webhook', { url: `${receiver.url}/a` })).toMatchObject({ status: 200 })
      expect(await put('kept', 'webhook', { url: `${receiver.url}/b` })).toMatchObject({
        status: 400,
        body: { error: { details: [{ field: 'body.settings.secret' }] } },
      })
    })

    it('a test sends a message at once and returns the result', async () => {
      await put('tested', 'slack', { url: `${receiver.url}/services/hidden-token-1` })
      received = []
      status = 200
      expect(await request('POST', 'tested/test', {})).toMatchObject({
        status: 200,
        body: { is_delivered: true, latency_ms: expect.any(Number), status: 200, error: null },
      })
      expect(received.map((push) => push.path)).toEqual(['/services/hidden-token-1'])
      expect(received[0]?.body.toString()).toContain('TEST: This is a test of the channel tested')
      status = 403
      const failed = await request('POST', 'tested/test', {})
      status = 200
      expect(failed).toMatchObject({
        status: 200,
        body: { is_delivered: false, status: 403, error: { code: 'http_403' } },
      })
    })

    it('a test of PagerDuty ends its incident', async () => {
      await put('pager', 'pagerduty', { routing_key: 'R0123', url: `${receiver.url}/pager` })
      received = []
      await request('POST', 'pager/test', {})
      const events = received.map(({ body }) => JSON.parse(body.toString()))
      expect(events.map(({ event_action: action }) => action)).toEqual(['trigger', 'resolve'])
      expect(new Set(events.map(({ dedup_key: key }) => key)).size).toBe(1)
    })

    it('a channel of the configuration cannot be changed, and a secret that cannot be read is named', async () => {
      for (const answer of [
        await put('fixed', 'slack', { url: receiver.url }),
        await request('DELETE', 'fixed', {}),
      ]) {
        expect(answer).toMatchObject({ status: 409, body: { error: { code: 'ALERT_CHANNEL_CONFIGURED' } } })
      }
      expect(await request('GET', 'fixed')).toMatchObject({
        body: { source: 'configuration', settings: { chat_id: '-5' }, secrets_set: ['bot_token'] },
      })
      expect((await request('POST', 'fixed/test', {})).status).toBeGreaterThanOrEqual(400)
    })

    it.each([
      ['slack', { url: 'file:/etc/passwd' }, 'url'],
      ['slack', { url: 'env:PATH' }, 'url'],
      ['pagerduty', { routing_key: 'file:/etc/passwd' }, 'routing_key'],
      ['webhook', { url: 'https://example.com', secret: 'x' }, 'secret'],
      ['email', { host: 'h', from: 'a@b.c', to: ['x\r\nBcc: y'] }, 'to'],
      ['slack', { url: 'https://example.com', chat_id: '1' }, 'chat_id'],
    ])('a %s channel with %j is refused, and the answer names %s', async (kind, given, field) => {
      expect(await put('bad', kind, given)).toMatchObject({
        status: 400,
        body: { error: { details: [{ field: `body.settings.${field}` }] } },
      })
    })

    it('the client has calls for channels', async () => {
      const client = createClient({ url: server.url, retriesMax: 0 })
      const spec = { kind: 'discord', settings: { url: `${receiver.url}/d` } } as const
      expect(await client.putAlertChannel('mine', spec)).toMatchObject({ name: 'mine', kind: 'discord' })
      expect((await client.listAlertChannels()).map(({ name }) => name)).toContain('mine')
      expect(await client.getAlertChannel('mine')).toMatchObject({ secrets_set: ['url'] })
      expect(await client.testAlertChannel('mine')).toMatchObject({ is_delivered: true })
      await client.deleteAlertChannel('mine')
      await expect(client.getAlertChannel('mine')).rejects.toMatchObject({ code: 'ALERT_CHANNEL_NOT_FOUND' })
    })

    it('the metrics count attempts by kind and outcome', async () => {
      const { text } = await fetch(`${server.url}/metrics`).then(async (response) => ({
        text: await response.text(),
      }))
      expect(text).toContain('# TYPE redrive_alert_notifications_total counter')
    })
  })
}

it('the setting alerts.channels accepts references, and never shows a secret', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-channels-'))
  const file = join(folder, 'key')
  await writeFile(file, 'R0123')
  const rows = [
    { name: 'pager', kind: 'pagerduty', routing_key: `file:${file}`, namespace: 'shop' },
    { name: 'chat', kind: 'slack', url: 'https://hooks.slack.com/services/hidden' },
  ]
  const text = formatAlertChannels(parseAlertChannels(JSON.stringify(rows)))
  expect(text).toContain(`file:${file}`)
  expect(text).not.toContain('hidden')
  await rm(folder, { recursive: true })
})

it.each([
  [[{ name: 'a', kind: 'fax' }], /kind is "fax"; known are webhook/],
  [[{ name: 'a b', kind: 'slack', url: 'https://x.y' }], /name: the name of a channel/],
  [[{ name: 'a', kind: 'slack' }], /alerts\.channels\[0\]\.url is missing/],
  [[{ name: 'a', kind: 'slack', url: 'vault:broken' }], /url must be the secret itself/],
  [[{ name: 'a', kind: 'slack', url: 'https://x.y', port: 1 }], /port is not a field/],
  [Array(2).fill({ name: 'a', kind: 'slack', url: 'https://x.y' }), /has a twice/],
])('the setting alerts.channels refuses %j', (rows, message) => {
  expect(() => parseAlertChannels(JSON.stringify(rows))).toThrow(message)
})
