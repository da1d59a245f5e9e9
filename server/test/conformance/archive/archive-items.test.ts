import { expect, it } from 'vitest'
import { aFailure, anOrigin, bytes, hour, minute, newItems, noon, toText } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('archiving', (given) => {
  /**
   * Six items that ended in reverse order: item-5 at noon, item-0 at noon + 5. Odd ones are done, even ones
   * dead.
   */
  const sixEnded = async () => {
    const queue = await given.queue({ doneRetentionUs: hour, onDead: 'keep', partitions: 2 })
    for (const [partition, count] of [
      [0, 4],
      [1, 2],
    ] as const) {
      const items = newItems(count, `p${partition}`)
      const { ids } = await given.run({ op: 'produce', queue, partition, items, now: noon - hour })
      const holders = ids.map(() => 'w')
      await given.run({ op: 'lease', queue, partition, holders, now: noon - hour })
      for (const [index, id] of ids.entries()) {
        const at = { queue, partition, now: noon + 5 - index - partition * 4 }
        const isDone = index % 2 === 1
        if (isDone) await given.run({ op: 'complete', ids: [id], ...at })
        else {
          const items = [{ id, availableAt: null, isDead: true, error: { message: 'no' } }]
          await given.run({ op: 'retry', items, ...at })
        }
      }
    }
    return queue
  }
  const archive = async (queue: string, endedBefore: number, countMax = 100, now = noon + minute) =>
    given.run({ op: 'archive', queue, endedBefore, countMax, now })
  const archivedNames = async (queue: string) =>
    (await given.storage.listArchive({ queue, countMax: 100 }))
      .map(({ item }) => toText(item.payload))
      .toSorted()

  it('archive moves items unchanged: exactly the archived rows are deleted', async () => {
    const queue = await sixEnded()
    const before = await given.storage.listItems({ queue, countMax: 100 })
    expect(await archive(queue, noon + hour)).toEqual({ archived: 6, isMore: false })
    expect(await given.storage.listItems({ queue, countMax: 100 })).toEqual([])
    const archived = await given.storage.listArchive({ queue, countMax: 100 })
    expect(archived).toEqual(before.map((item) => ({ item, archivedAt: noon + minute })))
    expect(await given.storage.readCounts({ queue })).toMatchObject([
      { done: 0, dead: 0, archived: 4 },
      { done: 0, dead: 0, archived: 2 },
    ])
  })

  it('archive takes up to countMax items that ended before a time, oldest first', async () => {
    const queue = await sixEnded()
    expect(await archive(queue, noon + 3, 2)).toEqual({ archived: 2, isMore: true })
    expect(await archivedNames(queue)).toEqual(['p1-0', 'p1-1'])
    expect(await archive(queue, noon + 3, 2)).toEqual({ archived: 1, isMore: false })
    expect(await archivedNames(queue)).toEqual(['p0-3', 'p1-0', 'p1-1'])
    expect(await archive(queue, noon + 3, 2)).toEqual({ archived: 0, isMore: false })
  })

  it('archive never takes waiting, scheduled or leased items', async () => {
    const queue = await given.queue()
    const items = [...newItems(2), ...newItems(1, 'later', { availableAt: noon + hour })]
    await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    expect(await archive(queue, noon + 100 * hour)).toEqual({ archived: 0, isMore: false })
    expect(await given.storage.listItems({ queue, countMax: 10 })).toHaveLength(3)
  })

  it('archive does not touch other queues', async () => {
    const [queue, other] = [await sixEnded(), await sixEnded()]
    await archive(queue, noon + hour)
    expect(await given.storage.listItems({ queue: other, countMax: 100 })).toHaveLength(6)
    expect(await given.storage.listArchive({ queue: other, countMax: 100 })).toEqual([])
  })

  it('archive keeps every byte of a dead letter', async () => {
    const queue = await given.queue()
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const letter = {
      payload: everyByte,
      key: everyByte,
      headers: [['h', everyByte]] as const,
      sourceId: 'kafka/7',
      origin: anOrigin(),
      failure: aFailure(),
      deadLetteredAt: noon - 1,
    }
    const [imported] = await given.run({ op: 'import', queue, partition: 0, items: [letter], now: noon })
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    await given.run({ op: 'complete', queue, partition: 0, ids: [imported?.id ?? ''], now: noon })
    const before = await given.storage.listItems({ queue, countMax: 10 })
    await archive(queue, noon + 1)
    const archived = await given.storage.listArchive({ queue, countMax: 10 })
    expect(archived.map(({ item }) => item)).toEqual(before)
    expect(before).toMatchObject([letter])
  })

  it('the archive is listed by state, partition, id, order and page', async () => {
    const queue = await sixEnded()
    const live = await given.storage.listItems({ queue, countMax: 100 })
    await archive(queue, noon + hour)
    const names = async (query: object) =>
      (await given.storage.listArchive({ queue, countMax: 100, ...query })).map(({ item }) =>
        toText(item.payload),
      )
    expect(await names({ states: ['done'], order: 'id' })).toEqual(
      live.filter((item) => item.state === 'done').map((item) => toText(item.payload)),
    )
    expect(await names({ partition: 1 })).toEqual(['p1-0', 'p1-1'])
    expect(await names({ ids: [live[3]?.id] })).toEqual([toText(live[3]?.payload ?? null)])
    expect(await names({ order: 'updatedAt' })).toEqual(['p1-1', 'p1-0', 'p0-3', 'p0-2', 'p0-1', 'p0-0'])
    expect(await names({ order: 'updatedAt', isDescending: true, countMax: 2 })).toEqual(['p0-0', 'p0-1'])
    const last = live[1]
    if (last === undefined) throw new Error('there are six')
    expect(await names({ from: { id: last.id, isIncluded: false }, countMax: 1 })).toEqual([
      toText(live[2]?.payload ?? null),
    ])
  })

  it('archiving frees the source id, so a repeated capture is a new letter', async () => {
    const queue = await given.queue()
    const items = [{ payload: bytes('x'), sourceId: 's', origin: anOrigin(), failure: aFailure() }]
    const command = { op: 'import', queue, partition: 0, items, now: noon } as const
    const [imported] = await given.run(command)
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
    await given.run({ op: 'complete', queue, partition: 0, ids: [imported?.id ?? ''], now: noon })
    await archive(queue, noon + 1)
    expect((await given.run(command))[0]?.id).not.toBeNull()
    await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now: noon })
  })
})
