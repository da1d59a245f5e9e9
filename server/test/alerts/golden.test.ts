/**
 * The exact requests that each kind of channel sends. After an intended change, run the tests with `-u` and
 * read the difference of `golden/`.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyWebhook } from '../../../client/src/verify-webhook.ts'
import { type ChannelKind, decodeTarget } from '../../src/core/alerts/channel.ts'
import type { Notification } from '../../src/core/alerts/notification.ts'
import { createChannelSender } from '../../src/drivers/notify/send/create-channel-sender.ts'
import { minute, noon } from '../make.ts'
import { type ReceivedPush, type Receiver, startReceiver } from '../webhook-push/receivers.ts'
import { aNotification, anAlert, ended } from './notifications.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

const second = anAlert({
  id: 'a2',
  severity: 'warning',
  summary: 'The oldest letter of refunds-dead waits for 2 h',
  subject: 'refunds-dead',
  queue: 'refunds-dead',
  group: null,
  count: null,
  sampleError: null,
  startedAt: noon - 130 * minute,
  dedupKey: 'oldest/refunds-dead',
})
const notifications: readonly (readonly [string, Notification])[] = [
  ['firing', aNotification({ alerts: [anAlert(), second], moreAlerts: 2 })],
  ['repeated', aNotification({ kind: 'repeated', severity: 'warning', alerts: [second] })],
  ['resolved', ended()],
]
const channels: readonly (readonly [Exclude<ChannelKind, 'email'>, Record<string, unknown>])[] = [
  ['webhook', { secret }],
  ['slack', {}],
  ['teams', {}],
  ['discord', {}],
  ['pagerduty', { routing_key: 'R0123' }],
  ['opsgenie', { api_key: 'key-1' }],
  ['telegram', { bot_token: '123:ABC', chat_id: '-42' }],
]

describe('the requests of a channel', () => {
  let receiver: Receiver
  let received: ReceivedPush[] = []
  const sender = createChannelSender({
    addresses: { isLoopbackAllowed: true, allowed: [] },
    clock: { now: () => noon },
    timeoutMs: 5_000,
  })
  beforeAll(async () => {
    receiver = await startReceiver((push, response) => {
      received.push(push)
      response.writeHead(202).end()
    })
  })
  afterAll(async () => {
    await sender.close()
    await receiver.close()
  })

  const cases = channels.flatMap(([kind, values]) =>
    notifications.map(([name, notification]) => [kind, name, values, notification] as const),
  )
  it.each(cases)('%s: %s', async (kind, name, values, notification) => {
    received = []
    const decoded = decodeTarget(kind, { url: `${receiver.url}/${kind}`, ...values })
    if ('problems' in decoded) throw new Error(JSON.stringify(decoded.problems))
    expect(await sender.send(decoded.target, notification)).toMatchObject({ isDelivered: true, status: 202 })
    const requests = received.map(({ path, headers, body }) => ({
      path,
      headers: Object.fromEntries(
        [
          'content-type',
          'user-agent',
          'authorization',
          'webhook-id',
          'webhook-timestamp',
          'webhook-signature',
        ]
          .filter((header) => headers[header] !== undefined)
          .map((header) => [header, headers[header]]),
      ),
      body: JSON.parse(body.toString()),
    }))
    await expect(`${JSON.stringify(requests, null, 2)}\n`).toMatchFileSnapshot(`golden/${kind}-${name}.txt`)
  })

  it('the client package verifies the signature of a webhook, and refuses a changed body', async () => {
    received = []
    const decoded = decodeTarget('webhook', { url: receiver.url, secret })
    if ('problems' in decoded) throw new Error(JSON.stringify(decoded.problems))
    await sender.send(decoded.target, aNotification())
    const [push] = received
    if (push === undefined) throw new Error('nothing was received')
    const options = { now: new Date(noon / 1_000) }
    expect(await verifyWebhook(secret, push.headers, push.body, options)).toMatchObject({ id: 'n1' })
    const changed = Buffer.from(push.body.toString().replace('critical', 'info'))
    await expect(verifyWebhook(secret, push.headers, changed, options)).rejects.toThrow('no signature')
  })
})
