import { expect, it } from 'vitest'
import type { Command } from '../../../src/storage/contract/storage.ts'
import { aNewItem, bytes, hour, newItems, noon } from '../../make.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { describeStores } from '../support/test-stores.ts'

const entry = {
  at: noon,
  actor: 'ann',
  action: 'test',
  target: 'write',
  reason: '',
  requestId: 'r',
  details: {},
} as const

describeStores('a list of commands', (given) => {
  const produce = (queue: string, ...payloads: string[]) =>
    ({
      op: 'produce',
      queue,
      partition: 0,
      items: payloads.map((text) => ({ payload: bytes(text) })),
      now: noon,
    }) as const
  const leaseIds = async (queue: string, count: number) => {
    const holders = Array.from({ length: count }, () => 'w')
    const leased = await given.run({ op: 'lease', queue, partition: 0, holders, now: noon })
    return leased.map((item) => item.id)
  }

  it('commands run in order, and each sees the effects of earlier ones', async () => {
    const [, produced, leased, cleared, counted] = await given.storage.write([
      { op: 'create-queue', queue: { name: 'q' }, now: noon },
      produce('q', 'a', 'b', 'c'),
      { op: 'lease', queue: 'q', partition: 0, holders: ['w1', 'w2'], now: noon },
      { op: 'clear', queue: 'q', isWaiting: true, isScheduled: false, isLeased: false, countMax: 10 },
      produce('q', 'd'),
    ])
    expect(leased.map((item) => item.id)).toEqual(produced.ids.slice(0, 2))
    expect(cleared.removed).toBe(1)
    expect(counted.ids).toHaveLength(1)
    const items = await given.storage.listItems({ queue: 'q', countMax: 10 })
    expect(items.map((item) => item.id)).toEqual([...produced.ids.slice(0, 2), ...counted.ids])
  })

  it('a rejected command undoes the whole list', async () => {
    const queue = await given.queue()
    const before = await given.storage.readCounts({})
    const broken: Command[] = [
      { op: 'create-queue', queue: { name: 'undone' }, now: noon },
      produce(queue, 'undone'),
      { op: 'audit', entries: [{ ...entry, action: 'undone' }] },
      { op: 'acquire-lock', name: 'undone', owner: 'ann', now: noon, deadline: noon + hour },
      produce('nowhere', 'x'),
      produce(queue, 'never'),
    ]
    const error = await expectRefusal(given.storage.write(broken), 'QUEUE_NOT_FOUND')
    expect(error.message).toContain('nowhere')

    expect(await given.storage.getQueue('undone')).toBeNull()
    expect(await given.storage.listItems({ queue, countMax: 10 })).toEqual([])
    expect(await given.storage.listAudit({ action: 'undone', countMax: 10 })).toEqual([])
    expect(await given.storage.readCounts({})).toEqual(before)
    const lock = {
      op: 'acquire-lock',
      name: 'undone',
      owner: 'bob',
      now: noon,
      deadline: noon + hour,
    } as const
    expect(await given.run(lock)).not.toBeNull()
  })

  it('a rejected list does not affect lists written at the same time', async () => {
    const queue = await given.queue()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) =>
        given.storage.write([
          produce(queue, `${index}`),
          produce(index % 4 === 0 ? 'nowhere' : queue, 'second'),
        ]),
      ),
    )
    expect(outcomes.map((outcome) => outcome.status === 'rejected')).toEqual(
      Array.from({ length: 40 }, (_, index) => index % 4 === 0),
    )
    expect(await given.storage.listItems({ queue, countMax: 100 })).toHaveLength(60)
  })

  it('refused settles do not undo the rest of the list', async () => {
    const queue = await given.queue()
    await given.storage.write([produce(queue, 'a', 'b')])
    const [leasedId = ''] = await leaseIds(queue, 1)
    const [refused, completed, audited] = await given.storage.write([
      { op: 'complete', queue, partition: 0, ids: ['0'.repeat(27)], now: noon },
      { op: 'complete', queue, partition: 0, ids: [leasedId], now: noon },
      { op: 'audit', entries: [entry] },
    ])
    expect(refused).toEqual({ isSettled: false, refused: [{ id: '0'.repeat(27), refusal: 'missing' }] })
    expect(completed.isSettled).toBe(true)
    expect(audited).toBeUndefined()
    expect(await given.storage.listItems({ queue, countMax: 10 })).toHaveLength(1)
  })

  it('an empty list is accepted', async () => {
    expect(await given.storage.write([])).toEqual([])
  })

  it('every command rejects an unknown queue or partition', async () => {
    const queue = await given.queue({ partitions: 2 })
    const id = '0'.repeat(27)
    const to = (name: string, partition: number): Command[] => [
      { op: 'produce', queue: name, partition, items: [aNewItem()], now: noon },
      { op: 'lease', queue: name, partition, holders: ['w'], now: noon },
      { op: 'complete', queue: name, partition, ids: [id], now: noon },
      {
        op: 'retry',
        queue: name,
        partition,
        items: [{ id, availableAt: null, isDead: false, error: null }],
        now: noon,
      },
      { op: 'extend', queue: name, partition, ids: [id], deadline: noon, now: noon },
      { op: 'import', queue: name, partition, items: [{ payload: bytes('x') }], now: noon },
      { op: 'delete', queue: name, partition, ids: [id] },
      {
        op: 'clear',
        queue: name,
        partition,
        isWaiting: true,
        isScheduled: true,
        isLeased: true,
        countMax: 1,
      },
    ]
    for (const command of to('nowhere', 0)) await expectRefusal(given.run(command), 'QUEUE_NOT_FOUND')
    for (const partition of [2, -1]) {
      for (const command of to(queue, partition))
        await expectRefusal(given.run(command), 'PARTITION_NOT_FOUND')
    }
    await expectRefusal(
      given.run({ op: 'archive', queue: 'nowhere', endedBefore: noon, countMax: 1, now: noon }),
      'QUEUE_NOT_FOUND',
    )
  })
})

describeStores('neighbouring commands of one kind', (given) => {
  const produce = (queue: string, count: number) =>
    given.run({ op: 'produce', queue, partition: 0, items: newItems(count), now: noon })

  it('neighbouring leases give an item to only one of them', async () => {
    const queue = await given.queue()
    const { ids } = await produce(queue, 5)
    const lease = { op: 'lease', queue, partition: 0, now: noon } as const
    const [first, second, third] = await given.storage.write([
      { ...lease, holders: ['a', 'b'] },
      { ...lease, holders: ['c', 'd'] },
      { ...lease, holders: ['e', 'f'] },
    ])
    const dealt = [...first, ...second, ...third].map((item) => [item.id, item.lease.holder])
    expect(dealt).toEqual(ids.map((id, index) => [id, 'abcde'[index]]))
  })

  it('neighbouring settles settle an item once, and it is missing for the later ones', async () => {
    const queue = await given.queue()
    const { ids } = await produce(queue, 2)
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w', 'w'], now: noon })
    const [id0 = '', id1 = ''] = ids
    const complete = (...some: string[]) =>
      ({ op: 'complete', queue, partition: 0, ids: some, now: noon }) as const
    const [first, again, other] = await given.storage.write([
      complete(id0),
      complete(id0, id1),
      complete(id1),
    ])
    expect(first.isSettled).toBe(true)
    // A settle is all or nothing: id1 was not completed by it, so it could be completed afterwards.
    expect(again).toEqual({ isSettled: false, refused: [{ id: id0, refusal: 'missing' }] })
    expect(other.isSettled).toBe(true)
  })

  it('neighbouring retries retry an item once, and its old id can no longer be completed', async () => {
    const queue = await given.queue()
    const { ids } = await produce(queue, 1)
    const [id = ''] = ids
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    const retry = {
      op: 'retry',
      queue,
      partition: 0,
      items: [{ id, availableAt: null, isDead: false, error: null }],
      now: noon,
    } as const
    const [first, again, completed] = await given.storage.write([
      retry,
      retry,
      { op: 'complete', queue, partition: 0, ids: [id], now: noon },
    ])
    expect(first.isSettled).toBe(true)
    const missing = { isSettled: false, refused: [{ id, refusal: 'missing' }] }
    expect([again, completed]).toEqual([missing, missing])
  })

  it('neighbouring imports store a source id once', async () => {
    const queue = await given.queue({ partitions: 2 })
    const importTo = (partition: number) =>
      ({
        op: 'import',
        queue,
        partition,
        items: [{ payload: bytes(`p${partition}`), sourceId: 'same' }],
        now: noon,
      }) as const
    const [first, second] = await given.storage.write([importTo(0), importTo(1)])
    expect([first[0]?.id === null, second[0]?.id === null]).toEqual([false, true])
  })

  it('neighbouring produces keep the order of the list', async () => {
    const queue = await given.queue()
    const commands = ['a', 'b', 'c'].map(
      (prefix) => ({ op: 'produce', queue, partition: 0, items: newItems(2, prefix), now: noon }) as const,
    )
    const ids = (await given.storage.write(commands)).flatMap((produced) => produced.ids)
    expect(ids).toEqual(ids.toSorted())
    expect(new Set(ids).size).toBe(6)
  })

  it('neighbouring commands for several queues and partitions reach the right one', async () => {
    const [left, right] = [await given.queue({ partitions: 2 }), await given.queue({ partitions: 2 })]
    const places = [left, right].flatMap((queue) => [0, 1].map((partition) => ({ queue, partition })))
    const commands = places.map(
      (at, index) => ({ op: 'produce', ...at, items: newItems(index + 1), now: noon }) as const,
    )
    const produced = await given.storage.write(commands)
    for (const [index, at] of places.entries()) {
      const items = await given.storage.listItems({ ...at, countMax: 10 })
      expect(items.map((item) => item.id)).toEqual(produced[index]?.ids)
    }
  })

  it('neighbouring deletes count an item once', async () => {
    const queue = await given.queue()
    const { ids } = await produce(queue, 2)
    const remove = { op: 'delete', queue, partition: 0, ids } as const
    expect(await given.storage.write([remove, remove])).toMatchObject([{ removed: 2 }, { removed: 0 }])
  })
})
