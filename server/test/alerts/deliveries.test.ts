/** Notifications through the queue to real receivers, on a clock that only the tests move. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestStore, needsOf, type TestStore } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { hour, minute, second } from '../make.ts'
import { type Answer, type ReceivedPush, type Receiver, startReceiver } from '../webhook-push/receivers.ts'
import { aNotification, anAlert, ended } from './notifications.ts'
import {
  advanceUntil,
  createTestClock,
  listQueue,
  type NodeOptions,
  type NotifyNode,
  queueNotification,
  startNotifyNode,
  type TestClock,
  waitForDead,
  waitUntilEmpty,
} from './notify-system.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

describe.each(['SQLite memory', 'PostgreSQL'] as const)('the delivery of notifications (%s)', (name) => {
  describe('', needsOf(name), () => {
    let store: TestStore
    let clock: TestClock
    let receiver: Receiver
    let received: ReceivedPush[]
    let answer: Answer
    const nodes: NotifyNode[] = []

    beforeEach(async () => {
      store = await createTestStore(name)
      clock = createTestClock()
      received = []
      answer = (_push, response) => response.end('ok')
      receiver = await startReceiver((push, response) => {
        received.push(push)
        answer(push, response)
      })
    })
    afterEach(async () => {
      await Promise.all(nodes.splice(0).map((node) => node.stop(0)))
      await receiver.close()
      await store.drop()
    })

    const status = (code: number, headers: Record<string, string> = {}): Answer => {
      return (_push, response) => void response.writeHead(code, headers).end('no')
    }
    const start = async (over: Partial<NodeOptions> = {}): Promise<NotifyNode> => {
      const channels = [
        { name: 'hook', kind: 'webhook', values: { url: `${receiver.url}/hook`, secret } },
        { name: 'slack', kind: 'slack', values: { url: `${receiver.url}/slack` } },
        { name: 'pager', kind: 'pagerduty', values: { url: `${receiver.url}/pager`, routing_key: 'k' } },
      ] as const
      const node = await startNotifyNode(store, { clock, channels, ...over })
      nodes.push(node)
      return node
    }
    const idsOf = (pushes: readonly ReceivedPush[]) => pushes.map(({ headers }) => headers['webhook-id'])

    it('a notification is sent once to each of its channels, and leaves the queue', async () => {
      const node = await start()
      await queueNotification(node, aNotification(), ['hook', 'slack'])
      await waitUntilEmpty(node, clock)
      expect(received.map(({ path }) => path).sort()).toEqual(['/hook', '/slack'])
      expect(node.reports.map(({ outcome }) => outcome)).toEqual(['delivered', 'delivered'])
      expect(node.errors).toEqual([])
    })

    it('a notification that is queued again before it is sent is sent once', async () => {
      const node = await start({ isSending: false })
      await queueNotification(node, aNotification(), ['hook'])
      await queueNotification(node, aNotification(), ['hook'])
      node.notifier.start()
      await waitUntilEmpty(node, clock)
      expect(received).toHaveLength(1)
    })

    it('a receiver that fails for an hour gets the alert once it is back, always with the same id', async () => {
      const node = await start()
      const backAt = clock.now() + hour
      let delivered = 0
      answer = (push, response) => {
        if (clock.now() < backAt) return status(503)(push, response)
        delivered += 1
        return void response.end('ok')
      }
      await queueNotification(node, aNotification(), ['hook'])
      await advanceUntil(node, clock, () => delivered > 0)
      await waitUntilEmpty(node, clock)
      expect(delivered).toBe(1)
      expect(clock.now() - backAt).toBeLessThan(6 * minute)
      expect(new Set(idsOf(received))).toEqual(new Set(['n1']))
      // 2 s, 4 s, … and then each 5 min: few attempts in an hour.
      expect(received.length).toBeGreaterThan(10)
      expect(received.length).toBeLessThan(30)
    })

    it('the end of an alert is not sent before its beginning, although the beginning has to be repeated', async () => {
      const node = await start()
      const actions: string[] = []
      const backAt = clock.now() + 10 * minute
      answer = (push, response) => {
        if (clock.now() < backAt) return status(500)(push, response)
        actions.push(JSON.parse(String(push.body)).event_action)
        return void response.writeHead(202).end()
      }
      await queueNotification(node, aNotification(), ['pager'])
      await pollUntil(
        async () => node.reports.length,
        (count) => count > 0,
      )
      await queueNotification(node, ended(), ['pager'])
      await advanceUntil(node, clock, () => actions.length === 2)
      await waitUntilEmpty(node, clock)
      expect(actions).toEqual(['trigger', 'resolve'])
    })

    it('a channel that hangs does not delay another channel', async () => {
      answer = ({ path }, response) => {
        if (path === '/slack') response.end('ok')
      }
      const node = await start({ timeoutMs: 2_000 })
      await queueNotification(node, aNotification(), ['hook'])
      await pollUntil(
        async () => received.length,
        (count) => count === 1,
      )
      await queueNotification(node, ended(), ['slack'])
      await pollUntil(
        async () => node.reports.length,
        (count) => count === 1,
      )
      expect(node.reports[0]).toMatchObject({ channel: 'slack', outcome: 'delivered' })
    })

    it('Retry-After postpones the next attempt', async () => {
      const node = await start()
      answer = status(429, { 'Retry-After': '600' })
      await queueNotification(node, aNotification(), ['slack'])
      const [item] = await pollUntil(
        () => listQueue(node),
        ([first]) => first?.state === 'waiting' && first.availableAt !== null,
      )
      expect(item).toMatchObject({ availableAt: clock.now() + 600 * second })
    })

    it.each([400, 401, 403, 404, 410])(
      'after HTTP %i the notification is a dead letter with the reason, and the next one is sent',
      async (code) => {
        const node = await start()
        answer = (push, response) =>
          received.length === 1 ? status(code)(push, response) : response.end('ok')
        await queueNotification(node, aNotification(), ['slack'])
        await queueNotification(node, ended(), ['slack'])
        const [letter] = await waitForDead(node, 1)
        expect(letter?.failure).toMatchObject({ errorCode: `http_${code}`, errorClass: 'HttpStatusError' })
        expect(letter?.failure?.message).toContain('channel slack: the receiver answered')
        await waitUntilEmpty(node, clock)
        expect(node.reports.map(({ outcome }) => outcome)).toEqual(['failed', 'delivered'])
      },
    )

    it('a notification that cannot be delivered for the configured time is a dead letter', async () => {
      const node = await start({ giveUpUs: hour })
      answer = status(503)
      const startedAt = clock.now()
      await queueNotification(node, aNotification(), ['hook'])
      await advanceUntil(node, clock, () => node.reports.at(-1)?.outcome === 'failed')
      expect(await waitForDead(node, 1)).toMatchObject([{ failure: { errorCode: 'http_503' } }])
      expect(clock.now() - startedAt).toBeGreaterThan(50 * minute)
      expect(clock.now() - startedAt).toBeLessThanOrEqual(hour)
    })

    it('a channel that does not exist is waited for, and then the notification is a dead letter', async () => {
      const node = await start()
      await queueNotification(node, aNotification(), ['nobody'])
      await advanceUntil(node, clock, () => node.reports.at(-1)?.outcome === 'failed')
      expect(await waitForDead(node, 1)).toMatchObject([{ failure: { errorCode: 'channel_not_found' } }])
      expect(node.reports.length).toBeGreaterThan(3)
    })

    it('a private address is refused without a connection', async () => {
      const node = await start({ isLoopbackAllowed: false })
      await queueNotification(node, aNotification(), ['hook'])
      expect(await waitForDead(node, 1)).toMatchObject([{ failure: { errorClass: 'ForbiddenAddressError' } }])
      expect(receiver.connections()).toBe(0)
    })

    it('an item that is no notification is a dead letter, and does not stop the others', async () => {
      const node = await start({ isSending: false })
      await node.notifier.prepare()
      const payload = new TextEncoder().encode('{"notification":{"id":7}}')
      await node.engine.produce('_alerts', [{ payload }])
      await queueNotification(node, aNotification(), ['hook'])
      node.notifier.start()
      expect(await waitForDead(node, 1)).toMatchObject([{ failure: { errorCode: 'malformed' } }])
      await waitUntilEmpty(node, clock)
      expect(received).toHaveLength(1)
    })

    it('a dead letter that is redriven is sent', async () => {
      const node = await start()
      answer = status(404)
      await queueNotification(node, aNotification(), ['slack'])
      const [letter] = await waitForDead(node, 1)
      answer = (_push, response) => response.end('ok')
      await node.engine.write([
        {
          op: 'redrive',
          letters: [{ letterId: letter?.rootId ?? '', queue: null }],
          isDeadAllowed: true,
          isCapped: false,
          actor: 'ann',
          now: clock.now(),
        },
      ])
      await pollUntil(
        async () => received.length,
        (count) => count === 2,
      )
    })

    it('many alerts of a channel are sent in the order in which they were queued', async () => {
      const node = await start({ isSending: false })
      for (let at = 0; at < 60; at++) {
        await queueNotification(node, aNotification({ id: `n${at}`, alerts: [anAlert()] }), ['hook'])
      }
      node.notifier.start()
      await advanceUntil(node, clock, () => received.length === 60)
      expect(idsOf(received)).toEqual(Array.from({ length: 60 }, (_, at) => `n${at}`))
    })

    it('two messages to a channel have the gap of the service between them', async () => {
      const times: number[] = []
      answer = (_push, response) => {
        times.push(performance.now())
        response.end('ok')
      }
      const node = await start({ isSending: false, gapMs: 150 })
      await queueNotification(node, aNotification(), ['slack'])
      await queueNotification(node, ended(), ['slack'])
      node.notifier.start()
      await waitUntilEmpty(node, clock)
      expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(140)
    })

    it('a server that stops during an attempt gives the notification back, and the next server sends it', async () => {
      const first = await start()
      answer = () => undefined
      await queueNotification(first, aNotification(), ['hook'])
      await pollUntil(
        async () => received.length,
        (count) => count === 1,
      )
      answer = (_push, response) => response.end('ok')
      const second = name === 'PostgreSQL' ? await start({ isSending: false }) : undefined
      await first.notifier.stop(0)
      if (second === undefined)
        expect(await listQueue(first)).toMatchObject([{ state: 'waiting', attempts: 0 }])
      else {
        second.notifier.start()
        await waitUntilEmpty(second, clock)
        expect(idsOf(received)).toEqual(['n1', 'n1'])
      }
    })

    it.runIf(name === 'PostgreSQL')('two servers send each notification once', async () => {
      const [first, second] = [await start(), await start()]
      for (let at = 0; at < 40; at++) {
        const node = at % 2 === 0 ? first : second
        await queueNotification(node, aNotification({ id: `n${at}` }), [at % 3 === 0 ? 'slack' : 'hook'])
      }
      await advanceUntil(first, clock, () => received.length >= 40)
      await waitUntilEmpty(first, clock)
      expect(received).toHaveLength(40)
      const hooks = idsOf(received.filter(({ path }) => path === '/hook'))
      expect(new Set(hooks).size).toBe(hooks.length)
      expect([...first.reports, ...second.reports].every(({ outcome }) => outcome === 'delivered')).toBe(true)
    })
  })
})
