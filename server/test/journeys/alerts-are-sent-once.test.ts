/** Alerts of servers that share a store, and of servers that are killed, at a real receiver. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startServerProcess } from '../http/server-process.ts'
import { sendRequest } from '../http/store-server.ts'
import { startTestServer } from '../http/test-server.ts'
import { seededNumbers } from '../seeded-random.ts'
import { type Receiver, startReceiver } from '../webhook-push/receivers.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/** `id`: of the notification. */
type Received = Readonly<{ id: string; type: string; queues: readonly string[] }>

describe.each(['SQLite file', 'PostgreSQL'] as const)('alerts are sent once (%s)', (name) => {
  describe('', needsOf(name), () => {
    let place: TestStore
    let receiver: Receiver
    let received: Received[]
    beforeEach(async () => {
      place = await createTestStore(name)
      received = []
      receiver = await startReceiver(({ headers, body }, response) => {
        const { type, data } = JSON.parse(body.toString())
        const queues = data.alerts.map(({ queue }: { queue: string }) => queue)
        received.push({ id: String(headers['webhook-id']), type, queues })
        response.end('ok')
      })
    })
    afterEach(async () => {
      await receiver.close()
      await place.drop()
    })

    const call = async (url: string, method: string, path: string, body: unknown) => {
      const answer = await sendRequest(url + path, method, body)
      if (answer.status !== 200) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
      return answer.body
    }
    const prepare = async (url: string): Promise<void> => {
      const settings = { url: receiver.url, secret }
      await call(url, 'PUT', '/api/v1/alerts/channels/robot', { kind: 'webhook', settings })
      await call(url, 'PUT', '/api/v1/alerts/rules/DLQNonFinancial', { group_wait: '0s' })
    }
    const failIn = async (url: string, queue: string): Promise<void> => {
      await call(url, 'POST', '/api/v1/queues', { name: queue, policy: {} })
      const error_details = { exception_class: 'Error', message: 'no route' }
      const letters = [{ original_topic: 'orders', original_value: 'x', error_details }]
      await call(url, 'POST', '/api/v1/letters', { queue, letters })
    }
    /** The ids of the notifications that a queue is firing. */
    const notificationsOf = (queue: string) =>
      new Set(
        received
          .filter(({ type, queues }) => type === 'alert.firing' && queues.includes(queue))
          .map(({ id }) => id),
      )
    const expectOnce = async (queues: readonly string[]): Promise<void> => {
      await pollUntil(
        async () => queues.filter((queue) => notificationsOf(queue).size === 0),
        (missing) => missing.length === 0,
        60_000,
      )
      // Time for a second notification, if there is one.
      await sleep(1_500)
      expect(queues.map((queue) => notificationsOf(queue).size)).toEqual(queues.map(() => 1))
    }

    it.skipIf(name === 'SQLite file')(
      'two servers that both check and send notify each alert once',
      async () => {
        const over = { 'webhooks.loopback_allowed': true, 'alerts.check_interval': 50 }
        const servers = [await startTestServer(over, place.target), await startTestServer(over, place.target)]
        const [first, second] = servers.map(({ url }) => url)
        await prepare(first ?? '')
        const queues = Array.from({ length: 12 }, (_, index) => `dead-${index}`)
        for (const [index, queue] of queues.entries())
          await failIn((index % 2 === 0 ? first : second) ?? '', queue)
        await expectOnce(queues)
        // No server was killed, so the receiver got no notification twice.
        expect(received.length).toBe(new Set(received.map(({ id }) => id)).size)
      },
    )

    it('a server that is killed again and again loses no alert, and notifies none a second time', async () => {
      const random = seededNumbers(19)
      const options = ['--alerts-check-interval', '1s']
      const queues: string[] = []
      let server = await startServerProcess(place.target, options)
      await prepare(server.url)
      for (let round = 0; round < 5; round++) {
        const queue = `dead-${round}`
        await failIn(server.url, queue)
        queues.push(queue)
        await sleep(random() * 1_500)
        await server.kill()
        server = await startServerProcess(place.target, options)
      }
      await expectOnce(queues)
    }, 180_000)
  })
})
