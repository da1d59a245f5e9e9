/**
 * `verify` compares arrivals per hour with the letters that are kept. It can find missing arrivals, never
 * extra ones.
 */
import { expect, it } from 'vitest'
import type { Difference } from '../../../src/storage/contract/difference.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { aFailure, day, hour, minute, newItems, noon } from '../../make.ts'
import { executeSql } from '../support/execute-sql.ts'
import { aLetter, createLetterActions, type LetterActions, refused } from '../support/letter-actions.ts'
import { run } from '../support/store-reads.ts'
import { createTestStore, describeDurableStores } from '../support/test-stores.ts'

const letters = 'letters'

type Theirs = Readonly<{
  store: Storage
  actions: LetterActions
  /** Runs SQL directly on the database. */
  change(sql: (hours: string) => string): Promise<void>
  /** The clock of the store. */
  setNow(at: number): void
}>

describeDurableStores('arrivals per hour', (given) => {
  /** A store of its own, at noon by its clock, with one dead queue. */
  const withStore = async (work: (theirs: Theirs) => Promise<void>) => {
    const place = await createTestStore(given.name)
    try {
      let now = noon
      const store = await place.open({ clock: { now: () => now } })
      for (const queue of [{ name: letters }, { name: 'work', deadQueue: letters }]) {
        await run(store, { op: 'create-queue', queue, now: noon })
      }
      await work({
        store,
        actions: createLetterActions({ ...given, storage: store, run: (command) => run(store, command) }),
        change: (sql) => executeSql(place.target, (schema) => sql(`${schema}group_hours`)),
        setNow: (at) => {
          now = at
        },
      })
    } finally {
      await place.drop()
    }
  }
  const short = (counted: number, actual: number): Difference[] => [
    { queue: letters, partition: -1, count: 'arrivals', counted, actual },
  ]

  it('verify reports a queue with fewer arrivals than letters, archived ones included', () =>
    withStore(async ({ store, actions, change }) => {
      await actions.produceDead('work', newItems(3))
      const old = await actions.produceDead('work', newItems(2), undefined, noon + hour)
      await actions.discard(old, noon + hour)
      await run(store, {
        op: 'archive',
        queue: letters,
        endedBefore: noon + day,
        countMax: 9,
        now: noon + day,
      })
      expect(await store.verify()).toEqual([])
      await change((hours) => `update ${hours} set n = n - 1 where last_at >= ${noon + hour}`)
      expect(await store.verify()).toEqual(short(1, 2))
    }))

  it('verify reports a group with fewer arrivals than letters', () =>
    withStore(async ({ store, actions, change }) => {
      await actions.produceDead('work', newItems(3))
      await actions.produceDead('work', newItems(2), { ...refused, errorClass: 'Other' }, noon + minute)
      await change(
        (hours) => `update ${hours} set n = n - 1 where last_at = ${noon};
          update ${hours} set n = n + 1 where last_at > ${noon}`,
      )
      expect(await store.verify()).toEqual(short(2, 3))
    }))

  it('reconcile does not change arrivals, because no row shows which are missing', () =>
    withStore(async ({ store, actions, change }) => {
      await actions.produceDead('work', newItems(2))
      await change((hours) => `delete from ${hours}`)
      expect(await store.reconcile()).toEqual([])
      expect(await store.verify()).toEqual(short(0, 2))
      expect(await store.listAudit({ action: 'counts.repair', countMax: 9 })).toEqual([])
    }))

  it('arrivals can exceed letters that failed again, changed their group or are gone', () =>
    withStore(async ({ store, actions }) => {
      const ids = await actions.produceDead('work', newItems(3))
      const sent = await actions.redriveOne(ids[0] ?? '', noon + hour)
      await actions.declareDead(
        await actions.leaseOne(sent, noon + hour),
        { ...refused, errorClass: 'Other' },
        noon + day,
      )
      await actions.declareDead(
        await actions.leaseOne({ queue: letters, partition: 0 }, noon + day),
        null,
        noon + day,
      )
      await actions.discard(ids.slice(2), noon + day)
      const archive = { endedBefore: noon + 3 * day, countMax: 9, now: noon + 3 * day } as const
      await run(store, { op: 'archive', queue: letters, ...archive })
      const purge = { archivedBefore: noon + 4 * day, countMax: 9 } as const
      await run(store, { op: 'purge-archive', queue: letters, ...purge })
      await actions.capture(letters, [aLetter({ failure: aFailure(), deadLetteredAt: noon - 3 * day })])
      expect(await store.verify()).toEqual([])
    }))

  it('arrivals of a letter that failed again after the clock moved back are counted', () =>
    withStore(async ({ store, actions, setNow }) => {
      const [id = ''] = await actions.produceDead('work', newItems(1), undefined, noon + 10 * hour)
      const sent = await actions.redriveOne(id, noon)
      await actions.declareDead(await actions.leaseOne(sent, noon), { ...refused, errorClass: 'Other' }, noon)
      // Arrivals at noon are past their retention; arrivals ten hours later are kept.
      setNow(noon + 7 * day + 5 * hour)
      expect(await store.reconcile()).toEqual([])
      expect(await store.verify()).toEqual([])
    }))

  it('arrivals past their retention are not compared', () =>
    withStore(async ({ store, actions, setNow }) => {
      await actions.produceDead('work', newItems(3))
      await actions.produceDead('work', newItems(1), undefined, noon + hour)
      setNow(noon + 8 * day)
      expect(await store.reconcile()).toEqual([])
      expect(await store.verify()).toEqual([])
      // The clock was wrong and is set back: forgotten arrivals stay forgotten.
      setNow(noon + 2 * day)
      expect(await store.reconcile()).toEqual([])
      expect(await store.verify()).toEqual([])
    }))
})
