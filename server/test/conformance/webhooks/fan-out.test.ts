import { expect, it } from 'vitest'
import { parseJobId } from '../../../src/core/webhook/job-id.ts'
import { bytes, noon, second, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'
import { createWebhookActions } from '../support/webhook-actions.ts'

describeStores('the fan-out of messages', (given) => {
  const { channel, consumer, broadcast, newMessage } = createWebhookActions(given)
  const lease = async (queue: string, count = 10, now = noon) =>
    given.run({ op: 'lease', queue, partition: 0, holders: Array.from({ length: count }, () => 'w'), now })

  it('a message is stored once, and each consumer gets one job that names it', async () => {
    await channel('c1')
    const consumers = [await consumer('c1', 'k1'), await consumer('c1', 'k2')]
    const message = await broadcast('c1', 'm1', { priority: 3, headers: [['X-Tenant', bytes('a')]] })
    expect(message).toMatchObject({ id: 'm1', producerName: 'P', dispatchedAt: noon, priority: 3 })
    expect(message.jobs.map(({ consumerNumber }) => consumerNumber)).toEqual(
      consumers.map(({ number }) => number),
    )
    for (const [position, { queue }] of consumers.entries()) {
      const [job] = await lease(queue)
      expect(job).toMatchObject({
        id: message.jobs[position]?.itemId,
        priority: 3,
        encoding: 'application/json',
      })
      expect(job?.payload).toHaveLength(0)
      expect(toText(job?.key ?? null)).toBe('m1')
      expect(parseJobId(job?.reference ?? '')).toEqual({ messageNumber: message.number, position })
    }
  })

  it('a message is dispatched once, and an id is accepted once per channel', async () => {
    await channel('c2')
    const { queue } = await consumer('c2', 'k')
    const messages = [newMessage('c2', 'm'), newMessage('c2', 'm'), newMessage('c2', 'n')]
    const results = await given.run({ op: 'accept-messages', messages, now: noon })
    expect(results.map((result) => result.isAccepted)).toEqual([true, false, true])
    const numbers = results.flatMap((result) => (result.isAccepted ? [result.number ?? 0] : []))
    const waiting = await given.storage.listUndispatched({ countMax: 1_000 })
    expect(waiting).toEqual(expect.arrayContaining(numbers))
    const [once, again] = [
      await given.run({ op: 'dispatch-messages', numbers, now: noon }),
      await given.run({ op: 'dispatch-messages', numbers, now: noon }),
    ]
    expect(once).toEqual({ dispatched: numbers, jobs: [{ queue, count: 2 }] })
    expect(again).toEqual({ dispatched: [], jobs: [] })
    expect(await given.storage.listUndispatched({ countMax: 1_000 })).toEqual([])
    expect(await lease(queue)).toHaveLength(2)
  })

  it('a job keeps its place when it is retried, and the delays grow as the contract says', async () => {
    await channel('c3')
    const { queue } = await consumer('c3', 'k')
    await broadcast('c3', 'first')
    await broadcast('c3', 'second')
    const [job] = await lease(queue, 1)
    const id = job?.id ?? ''
    let now = noon
    const delays: number[] = []
    for (let attempt = 1; attempt <= 5; attempt++) {
      const items = [{ id, isDead: false, error: { errorCode: 'http_503' }, chance: 0.9 }]
      const settled = await given.run({ op: 'retry', queue, partition: 0, items, now })
      expect(settled).toMatchObject({ isSettled: true, changes: [{ to: 'scheduled', id }] })
      const next = (await given.storage.readNextDueAt()) ?? 0
      delays.push((next - now) / second)
      now = next
      await given.run({ op: 'advance', now, countMax: 100 })
      const [again] = await lease(queue, 1, now)
      expect(again).toMatchObject({ id, attempts: attempt + 1 })
    }
    expect(delays).toEqual([5, 30, 60, 120, 180])
    const items = [{ id, isDead: false, error: { errorCode: 'http_503' }, chance: 0.9 }]
    const died = await given.run({ op: 'retry', queue, partition: 0, items, now })
    expect(died).toMatchObject({ isSettled: true, changes: [{ to: 'moved' }] })
  })

  it('a dead job is a letter with the bytes of its message, and a redrive of it is a new round of attempts', async () => {
    await channel('c4')
    const { queue, deadQueue } = await consumer('c4', 'k')
    const message = await broadcast('c4', 'm', { headers: [['X-Tenant', bytes('a')]] })
    const readState = async () => (await given.storage.readJobs(message.jobs))[0]
    expect(await readState()).toMatchObject({ state: 'queued', item: { attempts: 0 } })
    const [job] = await lease(queue)
    const reference = job?.reference ?? ''
    expect(await readState()).toMatchObject({ state: 'inflight' })
    const dead = [{ id: job?.id ?? '', isDead: true, error: { errorCode: 'http_410' }, chance: 0 }]
    await given.run({ op: 'retry', queue, partition: 0, items: dead, now: noon })
    const [letter] = await given.storage.listItems({ queue: deadQueue, countMax: 10 })
    expect(letter).toMatchObject({ sourceId: job?.id, reference, origin: { kind: 'webhook', name: queue } })
    expect(toText(letter?.payload ?? null)).toBe('payload of m')
    expect(letter?.headers).toEqual([['X-Tenant', bytes('a')]])
    expect(await given.storage.findLetterIds([reference])).toMatchObject([{ letterId: letter?.rootId }])
    expect(await readState()).toMatchObject({ state: 'dead', letterId: letter?.rootId, item: null })
    expect(await given.storage.listConsumerCounts('c4')).toMatchObject([
      { queued: 0, inflight: 0, delivered: 0, dead: 1, hadDead: true },
    ])
    const letters = [{ letterId: letter?.rootId ?? '', queue: null }]
    await given.run({ op: 'redrive', letters, isDeadAllowed: true, isCapped: false, actor: 'a', now: noon })
    expect(await readState()).toMatchObject({ state: 'queued', item: { attempts: 0 } })
    const [again] = await lease(queue)
    expect(again).toMatchObject({ reference, letterId: letter?.rootId })
    expect(toText(again?.payload ?? null)).toBe('payload of m')
    await given.run({ op: 'complete', queue, partition: 0, ids: [again?.id ?? ''], now: noon })
    expect(await readState()).toMatchObject({ state: 'delivered' })
    expect(await given.storage.listConsumerCounts('c4')).toMatchObject([
      { queued: 0, inflight: 0, delivered: 1, dead: 0, hadDead: true },
    ])
  })

  it('a push job whose lease ends is retried however often, and a pull job dies of it', async () => {
    await channel('c5')
    for (const type of ['push', 'pull'] as const) {
      const { queue } = await consumer('c5', type, type)
      await broadcast('c5', `m-${type}`)
      let now = noon
      for (let attempt = 1; attempt <= 7; attempt++) {
        await lease(queue, 1, now)
        now += 400 * second
        await given.run({ op: 'advance', now, countMax: 100 })
        now += 400 * second
        await given.run({ op: 'advance', now, countMax: 100 })
      }
      const counts = await given.storage.listConsumerCounts('c5')
      const own = counts.find((each) => each.consumer.type === type)
      expect(own).toMatchObject(type === 'push' ? { dead: 0 } : { dead: 1, queued: 0 })
    }
  })
})
