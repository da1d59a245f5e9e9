/** From a dead letter to the message in a receiver, and to the message that it is over. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verifyWebhook } from '../../../client/src/index.ts'
import { pollUntil } from '../http/poll-until.ts'
import { describeServer } from '../http/store-server.ts'
import { type ReceivedPush, type Receiver, startReceiver } from '../webhook-push/receivers.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

for (const store of ['SQLite memory', 'PostgreSQL'] as const) {
  const settings = {
    'webhooks.loopback_allowed': true,
    'alerts.check_interval': 100,
    'alerts.public_url': 'https://redrive.example.com',
  }
  describeServer(`an alert reaches people (${store})`, store, settings, (server) => {
    let receiver: Receiver
    const received: ReceivedPush[] = []
    let isAway = true
    beforeAll(async () => {
      receiver = await startReceiver((push, response) => {
        if (!isAway) received.push(push)
        response.writeHead(isAway ? 503 : 204).end()
      })
    })
    afterAll(() => receiver.close())

    it('a dead letter is reported once the receiver is back, and its end, too', async () => {
      const settings = { url: receiver.url, secret }
      await server.call('PUT', '/api/v1/alerts/channels/robot', { kind: 'webhook', settings })
      await server.call('PUT', '/api/v1/alerts/rules/Orders', {
        condition: { type: 'letters', queues: ['orders-dead'], count_min: 1 },
        severity: 'critical',
        group_wait: '0s',
        channels: ['robot'],
      })
      const off = { is_enabled: false }
      await server.call('PUT', '/api/v1/alerts/rules/DLQNonFinancial', off)
      await server.call('POST', '/api/v1/queues', {
        name: 'orders-dead',
        policy: {},
      })
      const { letters } = await server.call('POST', '/api/v1/letters', {
        queue: 'orders-dead',
        letters: [
          {
            original_topic: 'orders',
            original_value: { card: '1111' },
            error_details: { exception_class: 'PaymentRefused', message: 'card 1111 refused' },
            source_id: 's-1',
          },
        ],
      })
      await pollUntil(
        async () => server.lines.filter(({ msg }) => msg.includes('could not be delivered')).length,
        (count) => count > 0,
      )
      isAway = false
      const push = async (count: number): Promise<ReceivedPush> => {
        await pollUntil(
          async () => received.length,
          (found) => found >= count,
        )
        return received[count - 1] as ReceivedPush
      }
      const first = await push(1)
      await verifyWebhook(secret, first.headers, first.body, { toleranceSeconds: 1_000 })
      expect(JSON.parse(first.body.toString())).toMatchObject({
        type: 'alert.firing',
        data: {
          id: first.headers['webhook-id'],
          severity: 'critical',
          rule: 'Orders',
          alerts: [{ queue: 'orders-dead', count: 1, ended_at: null }],
        },
      })
      await server.call('POST', '/api/v1/letters/discard', { ids: [letters[0].id], reason: 'a test' })
      const second = await push(2)
      expect(JSON.parse(second.body.toString())).toMatchObject({
        type: 'alert.resolved',
        data: { alerts: [{ queue: 'orders-dead', ended_at: expect.any(String) }] },
      })
      await sleep(300)
      expect(received).toHaveLength(2)
    })
  })
}
