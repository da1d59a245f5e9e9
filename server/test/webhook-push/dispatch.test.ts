/** The dispatcher from the broadcast to the receiver, on both stores, with real receivers. */
import { afterEach, expect, it } from 'vitest'
import { broadcast, countsOf, describeNodes, putChannel, putConsumer } from './dispatch-system.ts'
import {
  type Answer,
  type ReceivedPush,
  type Receiver,
  startRawReceiver,
  startReceiver,
} from './receivers.ts'

const receivers: Receiver[] = []
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()))
})

async function receive(answer?: Answer): Promise<Receiver & { received: ReceivedPush[] }> {
  const received: ReceivedPush[] = []
  const receiver = await startReceiver((push, response) => {
    received.push(push)
    if (answer === undefined) response.end('ok')
    else answer(push, response)
  })
  receivers.push(receiver)
  return { ...receiver, received }
}

const waitMs = { timeout: 15_000, interval: 20 }

describeNodes('dispatch', {}, (given) => {
  it('each consumer gets each message once, with the headers of the contract and a signature', async () => {
    const { node } = given()
    await putChannel(node, 'c1')
    const targets = [await receive(), await receive()]
    const consumers = [
      await putConsumer(node, 'c1', 'k1', targets[0]?.url ?? ''),
      await putConsumer(node, 'c1', 'k2', targets[1]?.url ?? ''),
    ]
    const ids = await broadcast(node, 'c1', 100)
    for (const [at, consumer] of consumers.entries()) {
      await expect
        .poll(() => countsOf(node, consumer), waitMs)
        .toEqual({ queued: 0, inflight: 0, delivered: 100, dead: 0 })
      const received = targets[at]?.received ?? []
      expect(received.map(({ headers }) => headers['x-broker-message-id']).sort()).toEqual([...ids].sort())
      const [push] = received
      expect(push?.body.toString()).toBe(`payload of ${push?.headers['x-broker-message-id']}`)
      expect(push?.headers).toMatchObject({
        'content-type': 'application/json',
        'x-broker-message-priority': '0',
        'x-broker-channel-id': 'c1',
        'x-broker-consumer-id': consumer.id,
        'x-broker-consumer-token': `${consumer.id}-token`,
        'user-agent': 'Webhook Message Broker',
        'x-tenant': 'a',
        'x-broker-metadata-headers': 'X-Tenant',
      })
      expect(push?.headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/)
      expect(push?.headers['webhook-id']).toMatch(/^[0-9a-v]{20}$/)
    }
  })

  it('a failing job is tried 6 times, dies with its attempts as history, and its letter names the last failure', async () => {
    const { node } = given()
    await putChannel(node, 'c2')
    const target = await receive((_push, response) => response.writeHead(500).end('no'))
    const consumer = await putConsumer(node, 'c2', 'k', target.url)
    await broadcast(node, 'c2', 1)
    await expect
      .poll(() => countsOf(node, consumer), waitMs)
      .toEqual({ queued: 0, inflight: 0, delivered: 0, dead: 1 })
    expect(target.received).toHaveLength(6)
    const attempts = await node.storage.listAttempts({ consumer: consumer.number, countMax: 100 })
    expect(attempts.map(({ ordinal, status }) => [ordinal, status])).toEqual(
      [6, 5, 4, 3, 2, 1].map((n) => [n, 500]),
    )
    expect(attempts[0]).toMatchObject({
      failure: { kind: 'status', errorCode: 'http_500' },
      isTruncated: false,
    })
    expect(Buffer.from(attempts[0]?.body ?? []).toString()).toBe('no')
    const [letter] = await node.storage.listItems({ queue: consumer.deadQueue, countMax: 10 })
    expect(letter?.failure).toMatchObject({
      errorCode: 'http_500',
      errorClass: 'HttpStatusError',
      attempts: 6,
    })
    expect(new Set(target.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(new Set(target.received.map(({ headers }) => headers['x-request-id'])).size).toBe(6)
  })

  it('a permanent status kills a job at once', async () => {
    const { node } = given()
    await putChannel(node, 'c3')
    const target = await receive((_push, response) => response.writeHead(410).end())
    const consumer = await putConsumer(node, 'c3', 'k', target.url)
    await broadcast(node, 'c3', 1)
    await expect.poll(() => countsOf(node, consumer), waitMs).toMatchObject({ dead: 1 })
    expect(target.received).toHaveLength(1)
  })

  it('Retry-After postpones the next attempt', async () => {
    const { node } = given()
    await putChannel(node, 'c4')
    const at: number[] = []
    const target = await receive((_push, response) => {
      at.push(performance.now())
      if (at.length === 1) response.writeHead(503, { 'Retry-After': '1' }).end()
      else response.end()
    })
    const consumer = await putConsumer(node, 'c4', 'k', target.url)
    await broadcast(node, 'c4', 1)
    await expect.poll(() => countsOf(node, consumer), waitMs).toMatchObject({ delivered: 1 })
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(900)
  })

  it('consumers that hang or refuse do not delay one that answers', async () => {
    const { node } = given()
    await putChannel(node, 'c5')
    for (let count = 0; count < 3; count++) {
      const hanging = await startRawReceiver(() => undefined)
      receivers.push(hanging)
      await putConsumer(node, 'c5', `hanging-${count}`, hanging.url)
    }
    await putConsumer(node, 'c5', 'nobody', 'http://127.0.0.1:9/')
    await broadcast(node, 'c5', 100)
    // A message gets jobs for the consumers that exist when it is dispatched.
    await expect.poll(() => node.storage.countMessages('c5'), waitMs).toMatchObject({ dispatched: 100 })
    const target = await receive()
    const consumer = await putConsumer(node, 'c5', 'fast', target.url)
    await broadcast(node, 'c5', 300)
    // Each push to a hanging consumer takes 3 s, so without fairness their jobs would take minutes.
    const countReceived = () => new Set(target.received.map(({ body }) => body.toString())).size
    await expect.poll(countReceived, waitMs).toBe(300)
    await expect.poll(() => countsOf(node, consumer), waitMs).toMatchObject({ delivered: 300 })
  })

  it('the breaker holds the jobs of a failing consumer, and lets them through after a delivered probe', async () => {
    const { node } = given()
    await putChannel(node, 'c6')
    let isBroken = true
    const target = await receive((_push, response) => response.writeHead(isBroken ? 500 : 200).end())
    const consumer = await putConsumer(node, 'c6', 'k', target.url)
    const read = async () => (await node.storage.getDelivery('c6', 'k'))?.delivery?.breaker
    await broadcast(node, 'c6', 200)
    await expect.poll(async () => (await read())?.state, waitMs).toBe('open')
    const before = target.received.length
    await expect.poll(async () => await read(), waitMs).toMatchObject({ failedProbes: 2 })
    expect(target.received.length - before).toBeLessThan(20)
    expect((await countsOf(node, consumer)).dead).toBe(0)
    isBroken = false
    await expect
      .poll(() => countsOf(node, consumer), waitMs)
      .toEqual({ queued: 0, inflight: 0, delivered: 200, dead: 0 })
    expect((await read())?.state).toBe('closed')
  })

  it('a changed callback URL applies to the next push', async () => {
    const { node } = given()
    await putChannel(node, 'c7')
    const [first, second] = [await receive(), await receive()]
    const consumer = await putConsumer(node, 'c7', 'k', first.url)
    await broadcast(node, 'c7', 1)
    await expect.poll(() => countsOf(node, consumer), waitMs).toMatchObject({ delivered: 1 })
    await putConsumer(node, 'c7', 'k', second.url)
    await broadcast(node, 'c7', 1)
    await expect.poll(() => second.received.length, waitMs).toBe(1)
    expect(first.received).toHaveLength(1)
  })
})

// Leases end after a minute, so only what the dispatcher itself returns is available again.
describeNodes('dispatch with long leases', { delivery: { connectionTimeoutUs: 60_000_000 } }, (given) => {
  it('a consumer that becomes a pull consumer gets the jobs that waited for their push', async () => {
    const { node } = given()
    await putChannel(node, 'p1')
    const target = await receive()
    const consumer = await putConsumer(node, 'p1', 'k', target.url)
    await broadcast(node, 'p1', 1_500)
    await expect.poll(() => target.received.length, waitMs).toBeGreaterThan(200)
    await putConsumer(node, 'p1', 'k', target.url, 'pull')
    await expect.poll(() => node.storage.countMessages('p1'), waitMs).toMatchObject({ dispatched: 1_500 })
    await expect.poll(() => countsOf(node, consumer), waitMs).toMatchObject({ inflight: 0, dead: 0 })
    const { queued = 0, delivered = 0 } = await countsOf(node, consumer)
    expect([queued + delivered, queued > 0]).toEqual([1_500, true])
    expect(new Set(target.received.map(({ body }) => body.toString())).size).toBe(delivered)
  })
})
