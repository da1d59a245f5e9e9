import { expect, it } from 'vitest'
import { aFailure, anOrigin, bytes, hour, minute, newItems, noon, second } from '../../make.ts'
import { describeStores } from '../support/test-stores.ts'

describeStores('counts', (given) => {
  it('counts follow an item through every transition', async () => {
    const letters = await given.queue()
    const queue = await given.queue({ deadQueue: letters, doneRetentionUs: hour, leaseTimeoutUs: minute })
    const row = async (name: string) => {
      const { createdAtMean, leaseDeadlineMean, queue, partition, ...counts } =
        (await given.storage.readCounts({ queue: name }))[0] ?? {}
      return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
    }
    const items = [...newItems(6), ...newItems(1, 'later', { availableAt: noon + 30 * second })]
    const { ids } = await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
    expect(await row(queue)).toEqual({ accepted: 7, waiting: 6, scheduled: 1 })

    await given.run({ op: 'lease', queue, partition: 0, holders: ['a', 'b', 'c', 'd'], now: noon })
    expect(await row(queue)).toEqual({ accepted: 7, waiting: 2, scheduled: 1, leased: 4 })

    const [done = '', dead = '', again = ''] = ids
    await given.run({ op: 'complete', queue, partition: 0, ids: [done], now: noon })
    const gone = { availableAt: null, isDead: true, error: null }
    const later = { availableAt: noon + 45 * second, isDead: false, error: null }
    const givenBack = [
      { id: dead, ...gone },
      { id: again, ...later },
    ]
    await given.run({ op: 'retry', queue, partition: 0, items: givenBack, now: noon })
    const afterRetry = { accepted: 7, waiting: 2, scheduled: 2, leased: 1, done: 1, deadLettered: 1 }
    expect(await row(queue)).toEqual(afterRetry)
    expect(await row(letters)).toEqual({ accepted: 1, waiting: 1 })

    await given.run({ op: 'advance', now: noon + 2 * minute, countMax: 100 })
    const afterAdvance = { accepted: 7, waiting: 5, done: 1, deadLettered: 1 }
    expect(await row(queue)).toEqual(afterAdvance)

    await given.run({ op: 'delete', queue, partition: 0, ids: [ids[4] ?? ''] })
    await given.run({ op: 'archive', queue, endedBefore: noon + 1, countMax: 9, now: noon + 3 * minute })
    const afterAll = { accepted: 7, waiting: 4, deadLettered: 1, deleted: 1, archived: 1 }
    expect(await row(queue)).toEqual(afterAll)
  })

  it('counts are returned for one queue or all, ordered by partition', async () => {
    const names = [await given.queue({ partitions: 2 }), await given.queue()]
    const rows = await given.storage.readCounts({})
    expect(rows.map((row) => [row.queue, row.partition])).toEqual([
      [names[0], 0],
      [names[0], 1],
      [names[1], 0],
    ])
    const one = await given.storage.readCounts({ queue: names[0] ?? '' })
    expect(one).toEqual(rows.slice(0, 2))
  })

  it('counts include the mean creation time of waiting and leased items and the mean lease deadline', async () => {
    const queue = await given.queue({ leaseTimeoutUs: minute })
    const times = [noon, noon + 10 * second, noon + 50 * second + 7_000]
    for (const now of times) {
      await given.run({ op: 'produce', queue, partition: 0, items: newItems(1), now })
    }
    const scheduled = newItems(1, 'later', { availableAt: noon + hour })
    await given.run({ op: 'produce', queue, partition: 0, items: scheduled, now: noon + 30 * minute })
    for (const now of [noon + minute, noon + 2 * minute]) {
      await given.run({ op: 'lease', queue, partition: 0, holders: ['w'], now })
    }
    const [row] = await given.storage.readCounts({ queue })
    const mean = times.reduce((sum, time) => sum + (time - noon), noon * 3) / 3
    expect(Math.abs((row?.createdAtMean ?? 0) - mean)).toBeLessThanOrEqual(1_000)
    expect(Math.abs((row?.leaseDeadlineMean ?? 0) - (noon + 2.5 * minute))).toBeLessThanOrEqual(1_000)
  })

  it('the means of times are exact for 100,000 items', async () => {
    // Sums of microseconds exceed the safe integers after 6 items, so the mean must not use plain numbers.
    const queue = await given.queue()
    for (let batch = 0; batch < 10; batch++) {
      const now = noon + batch
      await given.run({ op: 'produce', queue, partition: 0, items: newItems(1_000), now })
    }
    const [row] = await given.storage.readCounts({ queue })
    expect(Math.abs((row?.createdAtMean ?? 0) - (noon + 4.5))).toBeLessThanOrEqual(1_000)
    const all = { isWaiting: true, isScheduled: true, isLeased: true }
    await given.run({ op: 'clear', queue, ...all, countMax: 100_000 })
    expect(await given.storage.readCounts({ queue })).toMatchObject([
      { createdAtMean: null, leaseDeadlineMean: null, waiting: 0 },
    ])
  })

  it('the means of times follow retry, lease end, extension and completion', async () => {
    const queue = await given.queue({ leaseTimeoutUs: minute })
    const at = { queue, partition: 0 }
    await given.run({ op: 'produce', ...at, items: newItems(2), now: noon })
    await given.run({ op: 'produce', ...at, items: newItems(2), now: noon + 8 * second })
    const means = async () => {
      const [row] = await given.storage.readCounts({ queue })
      const round = (time: number | null | undefined) =>
        time === null || time === undefined ? null : Math.round((time - noon) / 10_000) / 100
      return [round(row?.createdAtMean), round(row?.leaseDeadlineMean)]
    }
    const leased = await given.run({ op: 'lease', ...at, holders: ['a', 'b', 'c'], now: noon })
    const [a = '', b = '', c = ''] = leased.map((item) => item.id)
    expect(await means()).toEqual([4, 60])
    await given.run({ op: 'extend', ...at, ids: [a], deadline: noon + 120 * second, now: noon })
    expect(await means()).toEqual([4, 80])
    await given.run({ op: 'complete', ...at, ids: [b], now: noon })
    expect(await means()).toEqual([5.33, 90])
    const items = [{ id: c, availableAt: noon + hour, isDead: false, error: null }]
    await given.run({ op: 'retry', ...at, items, now: noon })
    expect(await means()).toEqual([4, 120])
    await given.run({ op: 'advance', now: noon + 121 * second, countMax: 10 })
    expect(await means()).toEqual([4, null])
    await given.run({ op: 'advance', now: noon + hour + 1, countMax: 10 })
    expect(await means()).toEqual([5.33, null])
  })

  it('an imported dead letter counts as accepted', async () => {
    const queue = await given.queue()
    const items = [{ payload: bytes('x'), sourceId: 's', origin: anOrigin(), failure: aFailure() }]
    await given.run({ op: 'import', queue, partition: 0, items, now: noon })
    await given.run({ op: 'import', queue, partition: 0, items, now: noon })
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ accepted: 1, waiting: 1 }])
  })

  it('reconcile changes nothing if the counts are right', async () => {
    const queue = await given.queue()
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(5), now: noon })
    const before = await given.storage.readCounts({})
    expect(await given.storage.reconcile()).toEqual([])
    expect(await given.storage.readCounts({})).toEqual(before)
  })

  it('the counts of queues are the sums of their partitions', async () => {
    const names = [await given.queue({ partitions: 3 }), await given.queue(), await given.queue()]
    for (const [index, queue] of names.entries()) {
      const items = newItems(4 - index)
      await given.run({ op: 'produce', queue, partition: 0, items, now: noon })
    }
    const [first = '', second_ = '', third = ''] = names
    await given.run({ op: 'produce', queue: first, partition: 2, items: newItems(2), now: noon })
    await given.run({ op: 'lease', queue: first, partition: 2, holders: ['a'], now: noon })

    const exact = await given.storage.readQueueCounts({ queues: names, countMax: 10 })
    const byName = new Map(exact.map((each) => [each.queue, each]))
    expect(byName.get(first)).toMatchObject({ accepted: 6, waiting: 5, leased: 1 })
    expect(byName.get(third)).toMatchObject({ accepted: 2, waiting: 2, leased: 0 })
    expect(exact).toHaveLength(3)

    const folded = await given.storage.readQueueCounts({ queues: names, countMax: 1 })
    expect(folded).toHaveLength(2)
    expect(folded.find(({ queue }) => queue === first)).toMatchObject({ accepted: 6 })
    expect(folded.find(({ queue }) => queue === null)).toMatchObject({ accepted: 5, waiting: 5 })
    expect(await given.storage.readQueueCounts({ queues: [second_], countMax: 1 })).toMatchObject([
      { queue: second_, accepted: 3 },
    ])
    expect(await given.storage.readQueueCounts({ queues: [], countMax: 1 })).toEqual([])
    const all = await given.storage.readQueueCounts({ countMax: 100_000 })
    expect(all.map(({ queue }) => queue)).toEqual(expect.arrayContaining(names))
  })
})
