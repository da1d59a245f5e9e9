import { expect, it } from 'vitest'
import { createKsuids } from '../../../src/core/ids/ksuid.ts'
import { day, minute, newItems, noon } from '../../make.ts'
import { executeSql } from '../support/execute-sql.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { createLetterActions } from '../support/letter-actions.ts'
import { describeDurableStores } from '../support/test-stores.ts'

describeDurableStores('a count that is wrong', (given) => {
  const aDriftedQueue = async () => {
    const queue = await given.queue({ partitions: 2 })
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(5), now: noon })
    await given.run({ op: 'produce', queue, partition: 1, items: newItems(3), now: noon })
    await executeSql(
      given.testStore.target,
      (schema) => `update ${schema}counts set waiting = waiting + 2 where partition = 1 and waiting > 0`,
    )
    return queue
  }

  it('verify reports a wrong count with both values', async () => {
    const queue = await aDriftedQueue()
    const differences = await given.storage.verify()
    expect(differences).toContainEqual({ queue, partition: 1, count: 'waiting', counted: 5, actual: 3 })
    expect(differences.filter((found) => 'partition' in found && found.partition === 0)).toEqual([])
    await given.storage.reconcile()
  })

  it('reconcile repairs a wrong count once and reports it', async () => {
    const queue = await aDriftedQueue()
    expect(await given.storage.reconcile()).toContainEqual({
      queue,
      partition: 1,
      count: 'waiting',
      counted: 5,
      actual: 3,
    })
    expect(await given.storage.readCounts({ queue })).toMatchObject([
      { waiting: 5, accepted: 5 },
      { waiting: 3, accepted: 3 },
    ])
    expect(await given.storage.reconcile()).toEqual([])
  })

  it('reconcile with a lost lock repairs nothing', async () => {
    const acquire = {
      op: 'acquire-lock',
      name: 'reconcile',
      owner: 'a',
      now: noon,
      deadline: noon + minute,
    } as const
    const lock = await given.run(acquire)
    if (lock === null) throw new Error('the lock was free')
    await given.run({ ...acquire, owner: 'b', now: noon + minute, deadline: noon + 2 * minute })
    await aDriftedQueue()
    const before = await given.storage.verify()
    await expectRefusal(given.storage.reconcile(lock), 'LOCK_LOST')
    expect(await given.storage.verify()).toEqual(before)
    await given.storage.reconcile()
  })

  it('verify reports a count that is wrong because an item vanished', async () => {
    const queue = await given.queue()
    const items = newItems(4, 'item', { reference: 'vanishes' })
    await given.run({ op: 'produce', queue, partition: 0, items: [...items, ...newItems(1)], now: noon })
    await executeSql(
      given.testStore.target,
      (schema) => `delete from ${schema}items where reference = 'vanishes'`,
    )
    const expected = { queue, partition: 0, count: 'waiting', counted: 5, actual: 1 }
    expect(await given.storage.verify()).toContainEqual(expected)
    expect(await given.storage.reconcile()).toContainEqual(expected)
    expect(await given.storage.readCounts({ queue })).toMatchObject([{ waiting: 1 }])
    // The audit row shows the repair: the repaired counts alone would hide the loss.
    const repairs = await given.storage.listAudit({ target: queue, action: 'counts.repair', countMax: 9 })
    expect(repairs.map(({ details }) => details)).toContainEqual({
      partition: 0,
      count: 'waiting',
      counted: 5,
      actual: 1,
    })
  })
})

describeDurableStores('an archive that was changed by hand', (given) => {
  const actions = createLetterActions(given)
  /** Ten letters are archived, one is restored and three are purged: six are left. */
  const anArchive = async () => {
    const { work, letters } = await actions.createQueues()
    const ids = await actions.produceDead(work, newItems(10))
    await actions.discard(ids)
    const archive = { op: 'archive', queue: letters, endedBefore: noon + day, now: noon + day } as const
    await given.run({ ...archive, countMax: 4 })
    await given.run({ ...archive, countMax: 10, now: noon + 2 * day })
    await given.run({ op: 'restore', letterIds: ids.slice(0, 1), now: noon + 3 * day })
    const purge = { op: 'purge-archive', queue: letters, archivedBefore: noon + 2 * day } as const
    expect(await given.run({ ...purge, countMax: 10 })).toEqual({ purged: 3, isMore: false })
    expect(await given.storage.verify()).toEqual([])
    return letters
  }
  const changeByHand = (sql: (table: string) => string) =>
    executeSql(given.testStore.target, (schema) => sql(`${schema}archive`))
  const kept = `(select min(id) from`

  it('missing archive rows are reported, and the count is repaired and audited', async () => {
    const queue = await anArchive()
    await changeByHand((table) => `delete from ${table} where id <> ${kept} ${table})`)
    const expected = { queue, partition: 0, count: 'archived', counted: 6, actual: 1 } as const
    expect(await given.storage.verify()).toEqual([expected])
    expect(await given.storage.reconcile()).toEqual([expected])
    expect(await given.storage.readCounts({ queue })).toMatchObject([
      { accepted: 5, waiting: 1, archived: 1, purged: 3 },
    ])
    expect(await given.storage.verify()).toEqual([])
    const [repairs] = await given.storage.listAudit({ target: queue, action: 'counts.repair', countMax: 1 })
    expect(repairs?.details).toEqual({ partition: 0, count: 'archived', counted: 6, actual: 1 })
  })

  it('extra archive rows are reported, and the count is repaired', async () => {
    const queue = await anArchive()
    await changeByHand(
      (table) => `create table copied as select * from ${table} where id = ${kept} ${table});
        update copied set id = 'x' || substr(id, 2); insert into ${table} select * from copied; drop table copied`,
    )
    const expected = { queue, partition: 0, count: 'archived', counted: 6, actual: 7 } as const
    expect(await given.storage.verify()).toEqual([expected])
    expect(await given.storage.reconcile()).toEqual([expected])
    expect(await given.storage.readCounts({ queue })).toMatchObject([
      { accepted: 11, archived: 7, purged: 3 },
    ])
    expect(await given.storage.verify()).toEqual([])
  })
})

describeDurableStores('a count of a campaign that is wrong', (given) => {
  const actions = createLetterActions(given)
  const [id, otherId] = createKsuids(undefined, noon, 2, Math.random) as [string, string]
  const countsOf = async (campaignId: string) => (await given.storage.getCampaign(campaignId))?.counts

  it('a wrong count of a campaign is reported and repaired', async () => {
    const { work } = await actions.createQueues()
    const letterIds = await actions.produceDead(work, newItems(3))
    for (const campaignId of [id, otherId]) {
      await given.run({ op: 'put-campaign', id: campaignId, version: 0, state: 'running', document: {} })
      await given.run({ op: 'freeze-ids', campaignId, letterIds })
    }
    const set = await given.storage.listCampaignLetters({ campaignId: id, countMax: 2 })
    const letters = set.map(({ letterId, position }) => ({
      letterId,
      queue: null,
      campaign: { id, position },
    }))
    await actions.redrive([], { letters })
    await executeSql(
      given.testStore.target,
      (schema) => `update ${schema}campaign_counts set n = n + 5 where campaign_id = '${id}' and n > 0`,
    )
    const differences = await given.storage.verify()
    expect(differences).toMatchObject([
      { campaign: id, count: 'pending', actual: 1 },
      { campaign: id, count: 'sent', actual: 2 },
    ])
    for (const { counted, actual } of differences) expect(counted).toBeGreaterThan(actual)
    expect(await given.storage.reconcile()).toEqual(differences)
    expect(await given.storage.verify()).toEqual([])
    expect(await countsOf(id)).toMatchObject({ pending: 1, sent: 2 })
    expect(await countsOf(otherId)).toMatchObject({ pending: 3, sent: 0 })
    const [repairs] = await given.storage.listAudit({ target: id, action: 'counts.repair', countMax: 1 })
    expect(repairs).toMatchObject({ details: { count: 'sent', actual: 2 } })
  })
})
