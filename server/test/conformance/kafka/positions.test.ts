import { expect, it } from 'vitest'
import type { ItemToImport } from '../../../src/storage/contract/items.ts'
import { aFailure, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('the position of a Kafka bridge', (given) => {
  let groups = 0
  /** Positions outlive queues, so each test has its own group. */
  const aGroup = () => ({ cluster: 'main', group: `group-${++groups}` })
  const orders = { topic: 'orders.dlq', partition: 0, topicId: 'a' }

  const claim = (bridge: ReturnType<typeof aGroup>, owner = 'ann', partitions = [orders], now = noon) =>
    given.run({ op: 'claim-kafka-partitions', ...bridge, owner, partitions, now })
  const advance = (
    bridge: ReturnType<typeof aGroup>,
    epoch: number,
    from: number | null,
    to: number,
    recordCount = 1,
  ) =>
    ({
      op: 'advance-kafka-positions',
      ...bridge,
      positions: [{ topic: orders.topic, partition: 0, epoch, from, to, recordCount }],
      now: noon + 1,
    }) as const

  it('a partition that was never read starts at the earliest offset', async () => {
    const [position] = await claim(aGroup())
    expect(position).toMatchObject({
      nextOffset: null,
      incarnation: 0,
      epoch: 1,
      owner: 'ann',
      recordCount: 0,
    })
  })

  it('claims have the order of the call, and each partition has a position of its own', async () => {
    const bridge = aGroup()
    const partitions = [2, 0, 1].map((partition) => ({ ...orders, partition }))
    const claimed = await claim(bridge, 'ann', partitions)
    expect(claimed.map(({ partition }) => partition)).toEqual([2, 0, 1])
    const listed = await given.storage.listKafkaPositions(bridge)
    expect(listed.map(({ partition }) => partition)).toEqual([0, 1, 2])
  })

  it('a position moves forward, and the next claim continues from it with a larger epoch', async () => {
    const bridge = aGroup()
    await claim(bridge)
    await given.run(advance(bridge, 1, null, 10, 7))
    await given.run(advance(bridge, 1, 10, 20, 8))
    const [position] = await claim(bridge, 'bob', [orders], noon + 2)
    expect(position).toMatchObject({
      nextOffset: 20,
      epoch: 2,
      owner: 'bob',
      recordCount: 15,
      updatedAt: noon + 2,
    })
  })

  it('a write of an earlier claim, or from another offset, is rejected with everything in it', async () => {
    const bridge = aGroup()
    const queue = await given.queue()
    await claim(bridge)
    await claim(bridge, 'bob')
    const letter: ItemToImport = {
      payload: Buffer.from('x'),
      sourceId: 'once',
      origin: {
        kind: 'kafka',
        name: 'orders',
        partition: 0,
        id: '1',
        group: null,
        cluster: 'main',
        createdAt: noon,
      },
      failure: aFailure(),
    }
    const imported = { op: 'import', queue, partition: 0, items: [letter], now: noon } as const
    const stale = given.storage.write([imported, advance(bridge, 1, null, 10)])
    await expectRefusal(stale, 'KAFKA_PARTITION_LOST')
    await expectRefusal(given.storage.write([imported, advance(bridge, 2, 5, 10)]), 'KAFKA_PARTITION_LOST')
    expect(await given.storage.listItems({ queue, countMax: 10 })).toEqual([])
    await given.storage.write([imported, advance(bridge, 2, null, 10)])
    expect(await given.storage.listItems({ queue, countMax: 10 })).toHaveLength(1)
    await expectRefusal(given.storage.write([imported, advance(bridge, 2, null, 10)]), 'KAFKA_PARTITION_LOST')
    expect(await given.storage.listKafkaPositions(bridge)).toMatchObject([{ nextOffset: 10 }])
  })

  it('one of two writes from the same offset is stored', async () => {
    const bridge = aGroup()
    await claim(bridge)
    const outcomes = await Promise.allSettled([
      given.run(advance(bridge, 1, null, 10)),
      given.run(advance(bridge, 1, null, 10)),
    ])
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  it('a topic that was created again starts at the earliest offset, as another incarnation', async () => {
    const bridge = aGroup()
    await claim(bridge)
    await given.run(advance(bridge, 1, null, 10))
    const [again] = await claim(bridge, 'ann', [{ ...orders, topicId: 'b' }])
    expect(again).toMatchObject({ nextOffset: null, incarnation: 1, epoch: 2, topicId: 'b' })
    const [same] = await claim(bridge, 'ann', [{ ...orders, topicId: 'b' }])
    expect(same).toMatchObject({ incarnation: 1, epoch: 3 })
  })

  it('an import of new items only is rejected if one of them is there already', async () => {
    const queue = await given.queue()
    const letters = ['a', 'b'].map(
      (sourceId): ItemToImport => ({
        payload: Buffer.from(sourceId),
        sourceId,
        origin: {
          kind: 'kafka',
          name: 'orders',
          partition: 0,
          id: '1',
          group: null,
          cluster: 'main',
          createdAt: noon,
        },
        failure: aFailure(),
      }),
    )
    const first = {
      op: 'import',
      queue,
      partition: 0,
      items: letters.slice(0, 1),
      isNewOnly: true,
      now: noon,
    } as const
    await given.run(first)
    await expectRefusal(given.run({ ...first, items: letters }), 'SOURCE_ID_EXISTS')
    await expectRefusal(
      given.run({ ...first, items: [letters[1], letters[1]] as ItemToImport[] }),
      'SOURCE_ID_EXISTS',
    )
    expect(await given.storage.listItems({ queue, countMax: 10 })).toHaveLength(1)
    await given.run({ ...first, items: letters.slice(1) })
    expect(await given.storage.listItems({ queue, countMax: 10 })).toHaveLength(2)
  })
})
