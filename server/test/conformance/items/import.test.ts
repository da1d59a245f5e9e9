import { expect, it } from 'vitest'
import { toRootId } from '../../../src/core/ids/ids.ts'
import type { Origin } from '../../../src/core/items/item.ts'
import type { ItemToImport } from '../../../src/storage/contract/items.ts'
import { aFailure, anItem, anOrigin, bytes, day, hour, minute, newItems, noon, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('importing', (given) => {
  const importTo = async (queue: string, items: readonly ItemToImport[], now = noon, partition = 0) =>
    given.run({ op: 'import', queue, partition, items, now })
  const list = async (queue: string) => given.storage.listItems({ queue, countMax: 100 })

  it('import stores an item as given, with a new id and creation time', async () => {
    const queue = await given.queue({ partitions: 2, expireTimeoutUs: hour })
    const item = {
      payload: bytes('x'),
      kind: 'k',
      encoding: 'e',
      reference: 'r',
      key: bytes('key'),
      headers: [['h', bytes('v')]],
      priority: 9,
      attempts: 5,
      attemptsMax: 7,
      sourceId: 'elsewhere/1',
      expireDeadline: noon + day + 1,
      letterId: '0ujtsYcgvSTl8PAuAdqWYSMnLOv',
      retryCount: 2,
      failure: aFailure(),
    } as const
    const [imported] = await importTo(queue, [item], noon + 3, 1)
    const id = imported?.id ?? ''
    expect(imported).toEqual({ id, createdAt: noon + 3, expireDeadline: noon + day + 1 })
    const at = { createdAt: noon + 3, updatedAt: noon + 3 }
    expect(await list(queue)).toEqual([
      anItem({ ...item, id, rootId: toRootId(id), queue, partition: 1, ...at }),
    ])
  })

  it('import keeps the lease deadline of an item that is not leased', async () => {
    const queue = await given.queue()
    const item = { payload: bytes('x'), givenLeaseDeadline: noon - hour }
    const imported = await importTo(queue, [item, item, item])
    expect(await list(queue)).toMatchObject(
      imported.map(({ id }) => ({ id, givenLeaseDeadline: noon - hour })),
    )
    const [counts] = await given.storage.readCounts({ queue })
    expect(counts).toMatchObject({ waiting: 3, leased: 0, leaseDeadlineMean: null })

    const lease = { op: 'lease', queue, partition: 0, now: noon } as const
    const [back, held] = await given.run({ ...lease, holders: ['worker', 'worker'] })
    const backs = [{ id: back?.id ?? '', isDead: false, error: null, availableAt: null }]
    await given.run({ op: 'retry', queue, partition: 0, items: backs, now: noon })
    expect((await list(queue)).map((each) => 'givenLeaseDeadline' in each)).toEqual([false, true, false])
    await given.run({ op: 'delete', queue, partition: 0, ids: [imported[2]?.id ?? ''] })
    expect(await given.storage.readCounts({ queue })).toMatchObject([
      { waiting: 1, leased: 1, leaseDeadlineMean: held?.lease.deadline },
    ])
  })

  it('import applies defaults for missing fields', async () => {
    const queue = await given.queue({ expireTimeoutUs: hour })
    const [imported] = await importTo(queue, [{ payload: bytes('x') }])
    const id = imported?.id ?? ''
    expect(imported?.expireDeadline).toBe(noon + hour)
    const expireDeadline = noon + hour
    expect(await list(queue)).toEqual([
      anItem({ id, rootId: toRootId(id), queue, payload: bytes('x'), expireDeadline }),
    ])
  })

  it('import can store a leased item with any deadline', async () => {
    const queue = await given.queue()
    const lease = { holder: 'worker-9', deadline: noon + minute }
    await importTo(queue, [
      { payload: bytes('held'), lease, attempts: 3 },
      { payload: bytes('ended'), lease: { holder: 'worker-8', deadline: noon - minute }, attempts: 1 },
    ])
    expect(await list(queue)).toMatchObject([
      { state: 'leased', lease, attempts: 3 },
      { state: 'leased', lease: { holder: 'worker-8', deadline: noon - minute }, attempts: 1 },
    ])
    expect(await given.storage.readNextDueAt()).toBe(noon - minute)
    const { changes } = await given.run({ op: 'advance', now: noon, countMax: 10 })
    expect(changes).toMatchObject([{ cause: 'lease-end' }])
  })

  it('import can store a scheduled item', async () => {
    const queue = await given.queue()
    await importTo(queue, [{ payload: bytes('x'), availableAt: noon + hour }])
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ waiting: 0, scheduled: 1 }])
    expect(await list(queue)).toMatchObject([{ state: 'waiting', availableAt: noon + hour }])
  })

  it('import of an item with an origin creates a dead letter', async () => {
    const queue = await given.queue()
    const origins: Origin[] = [
      anOrigin(),
      anOrigin({
        kind: 'queue',
        name: 'orders',
        id: '0ujtsYcgvSTl8PAuAdqWYSMnLOv',
        group: null,
        cluster: null,
      }),
      anOrigin({ kind: 'webhook', partition: null, group: '', cluster: '' }),
      anOrigin({ kind: 'http', name: '', id: '', partition: 0, createdAt: -1 }),
    ]
    await importTo(
      queue,
      origins.map((origin, index) => ({
        payload: bytes('x'),
        sourceId: `${index}`,
        origin,
        failure: aFailure(),
        deadLetteredAt: noon - hour,
      })),
    )
    const items = await list(queue)
    expect(items.map((item) => item.origin)).toEqual(origins)
    expect(items.map((item) => [item.deadLetteredAt, item.failure])).toEqual(
      origins.map(() => [noon - hour, aFailure()]),
    )
  })

  it('import skips a source id that exists in any partition and names its item', async () => {
    const queue = await given.queue({ partitions: 2 })
    await importTo(queue, [{ payload: bytes('first'), sourceId: 'a' }])
    const imported = await importTo(
      queue,
      [
        { payload: bytes('second a'), sourceId: 'a' },
        { payload: bytes('first b'), sourceId: 'b' },
        { payload: bytes('second b'), sourceId: 'b' },
        { payload: bytes('none'), sourceId: null },
        { payload: bytes('none') },
      ],
      noon,
      1,
    )
    expect(imported.map((row) => row.id === null)).toEqual([true, false, true, false, false])
    const items = await list(queue)
    expect(items.map((item) => toText(item.payload)).toSorted()).toEqual(['first', 'first b', 'none', 'none'])
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ accepted: 1 }, { accepted: 3 }])
  })

  it('import accepts a source id again in another queue or after its item is gone', async () => {
    const [queue, other] = [await given.queue(), await given.queue()]
    const item = { payload: bytes('x'), sourceId: 'a' }
    const [first] = await importTo(queue, [item])
    expect((await importTo(other, [item]))[0]?.id).not.toBeNull()
    await given.run({ op: 'delete', queue, partition: 0, ids: [first?.id ?? ''] })
    expect((await importTo(queue, [item]))[0]?.id).not.toBeNull()
  })

  it('source ids are compared byte for byte', async () => {
    const queue = await given.queue()
    // These look or sort the same but are different texts. The last one is empty, not absent.
    const sourceIds = ['a', 'A', 'a ', 'ä', 'a\u0308', 'ａ', '']
    const imported = await importTo(
      queue,
      sourceIds.map((sourceId) => ({ payload: bytes('x'), sourceId })),
    )
    expect(imported.filter((row) => row.id === null)).toEqual([])
    expect((await list(queue)).map((item) => item.sourceId)).toEqual(sourceIds)
    expect((await importTo(queue, [{ payload: bytes('x'), sourceId: '' }]))[0]?.id).toBeNull()
  })

  it('imported items can be leased immediately, in their order', async () => {
    const queue = await given.queue()
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(1, 'before'), now: noon + hour })
    await importTo(queue, [{ payload: bytes('imported-0') }, { payload: bytes('imported-1') }])
    const leased = await given.run({ op: 'lease', queue, partition: 0, holders: ['w', 'w', 'w'], now: noon })
    expect(leased.map((item) => toText(item.payload))).toEqual(['before-0', 'imported-0', 'imported-1'])
  })

  it('import of 10,000 items skips all of them the second time', async () => {
    const queue = await given.queue()
    const items = Array.from({ length: 10_000 }, (_, index) => ({
      payload: bytes('x'),
      sourceId: `s${index}`,
    }))
    expect((await importTo(queue, items)).filter((row) => row.id === null)).toHaveLength(0)
    expect((await importTo(queue, items)).filter((row) => row.id === null)).toHaveLength(10_000)
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ accepted: 10_000, waiting: 10_000 }])
  })
})
