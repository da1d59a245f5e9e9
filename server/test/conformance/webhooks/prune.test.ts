import { expect, it } from 'vitest'
import { noon, second } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'
import { createWebhookActions } from '../support/webhook-actions.ts'

describeStores('the pruning of messages', (given) => {
  const { channel, consumer, broadcast } = createWebhookActions(given)
  const leaseOne = async (queue: string) => {
    const [job] = await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    return job?.id ?? ''
  }
  const deliver = async (queue: string) => {
    const ids = [await leaseOne(queue)]
    await given.run({ op: 'complete', queue, partition: 0, ids, now: noon })
  }
  const prune = async (numbers: readonly number[], postponed: { number: number; pruneAt: number }[] = []) =>
    (await given.run({ op: 'prune-messages', numbers, postponed })).removed
  const listNumbers = async (before = noon + second) =>
    (await given.storage.listPrunable({ before, countMax: 100 })).map(({ number }) => number)

  it('a message whose jobs are all delivered is removed with its jobs, and the counts follow', async () => {
    await channel('r1')
    const consumers = [await consumer('r1', 'a'), await consumer('r1', 'b')]
    const { number } = await broadcast('r1', 'm')
    for (const { queue } of consumers) await deliver(queue)
    expect(await listNumbers(noon - 1)).toEqual([])
    expect(await given.storage.listPrunable({ before: noon, countMax: 100 })).toEqual([
      { number, createdAt: noon, payloadBytes: 'payload of m'.length },
    ])
    expect(await prune([number])).toEqual([number])
    expect(await prune([number])).toEqual([])
    expect(await given.storage.getMessage('r1', 'm')).toBeNull()
    expect(await given.storage.countMessages('r1')).toMatchObject({ dispatched: 0 })
    for (const counts of await given.storage.listConsumerCounts('r1'))
      expect(counts).toMatchObject({ queued: 0, inflight: 0, delivered: 0, dead: 0 })
    for (const { queue } of consumers)
      expect(await given.storage.readCounts({ queue })).toMatchObject([{ accepted: 1, forgotten: 1 }])
    const condition = { kind: 'any' } as const
    const deleted = await given.run({ op: 'delete-consumer', channelId: 'r1', id: 'a', condition, now: noon })
    expect(deleted).toEqual({ refusal: null })
  })

  it('a message with a job that is queued, in flight or dead stays whole', async () => {
    await channel('r2')
    const [first, second_] = [await consumer('r2', 'a'), await consumer('r2', 'b')]
    const { number } = await broadcast('r2', 'm')
    await deliver(first.queue)
    expect(await prune([number])).toEqual([])
    const id = await leaseOne(second_.queue)
    expect(await prune([number])).toEqual([])
    const items = [{ id, isDead: true, error: { errorCode: 'http_410' }, chance: 0 }]
    await given.run({ op: 'retry', queue: second_.queue, partition: 0, items, now: noon })
    expect(await prune([number])).toEqual([])
    expect(await given.storage.listConsumerCounts('r2')).toMatchObject([{ delivered: 1 }, { dead: 1 }])
    const [letter] = await given.storage.listItems({ queue: second_.deadQueue, countMax: 10 })
    const letters = [{ letterId: letter?.rootId ?? '', queue: null }]
    await given.run({ op: 'discard', letters, reason: 'x', now: noon })
    expect(await prune([number])).toEqual([number])
  })

  it('a delivered redrive outlives its message as a letter', async () => {
    await channel('r3')
    const { queue, deadQueue } = await consumer('r3', 'a')
    const { number } = await broadcast('r3', 'm')
    const items = [{ id: await leaseOne(queue), isDead: true, error: { errorCode: 'x' }, chance: 0 }]
    await given.run({ op: 'retry', queue, partition: 0, items, now: noon })
    const [letter] = await given.storage.listItems({ queue: deadQueue, countMax: 10 })
    const letters = [{ letterId: letter?.rootId ?? '', queue: null }]
    await given.run({ op: 'redrive', letters, isDeadAllowed: true, isCapped: false, actor: 'a', now: noon })
    expect(await prune([number])).toEqual([])
    await deliver(queue)
    expect(await prune([number])).toEqual([number])
    expect(await given.storage.listItems({ queue: deadQueue, countMax: 10 })).toMatchObject([
      { state: 'done' },
    ])
  })

  it('a postponed message has its next turn later, and a message without jobs can be removed', async () => {
    await channel('r4')
    const [one, two] = [await broadcast('r4', 'one'), await broadcast('r4', 'two')]
    const pruneAt = noon + 60 * second
    expect(await prune([], [{ number: one.number, pruneAt }])).toEqual([])
    expect(await listNumbers()).toEqual([two.number])
    expect(await listNumbers(pruneAt)).toEqual([two.number, one.number])
    expect(await prune([one.number, two.number])).toEqual([one.number, two.number])
  })

  it('the checksum of the configuration is the one that was recorded last', async () => {
    expect(await given.storage.readConfigurationChecksum()).toBeNull()
    for (const checksum of ['a', 'b']) await given.run({ op: 'record-configuration', checksum, now: noon })
    expect(await given.storage.readConfigurationChecksum()).toBe('b')
  })
})
