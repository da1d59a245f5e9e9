import { expect, it } from 'vitest'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { aFailure, anOrigin, bytes, hour, minute, newItems, noon } from '../../make.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { run } from '../support/store-reads.ts'
import {
  createTestStore,
  describeDurableStores,
  describeStores,
  type TestStore,
} from '../support/test-stores.ts'

describeDurableStores('after a restart', (given) => {
  const everything = async (storage: Storage) => ({
    queues: await storage.listQueues({ countMax: 100 }),
    counts: await storage.readCounts({}),
    items: await storage.listItems({ queue: 'work', countMax: 100 }),
    letters: await storage.listItems({ queue: 'letters', countMax: 100 }),
    archive: await storage.listArchive({ queue: 'work', countMax: 100 }),
    audit: await storage.listAudit({ countMax: 100 }),
    nextDueAt: await storage.readNextDueAt(),
  })

  const fill = async (storage: Storage): Promise<readonly string[]> => {
    const [, , produced, leased] = await storage.write([
      { op: 'create-queue', queue: { name: 'letters' }, now: noon },
      {
        op: 'create-queue',
        queue: { name: 'work', deadQueue: 'letters', doneRetentionUs: hour, partitions: 2 },
        now: noon,
      },
      { op: 'produce', queue: 'work', partition: 0, items: newItems(6), now: noon },
      { op: 'lease', queue: 'work', partition: 0, holders: ['a', 'b', 'c', 'd'], now: noon },
    ])
    const [a = '', b = '', c = ''] = leased.map((item) => item.id)
    const back = { availableAt: null, isDead: false, error: { message: 'no' } }
    const at = { queue: 'work', partition: 0, now: noon } as const
    await storage.write([
      { op: 'complete', ids: [a], ...at },
      { op: 'archive', queue: 'work', endedBefore: noon + 1, countMax: 1, now: noon },
      { op: 'retry', items: [{ ...back, id: b, isDead: true }], ...at },
      { op: 'retry', items: [{ ...back, id: c, availableAt: noon + minute }], ...at },
      {
        op: 'import',
        queue: 'letters',
        partition: 0,
        items: [{ payload: bytes('x'), sourceId: 's', origin: anOrigin(), failure: aFailure() }],
        now: noon,
      },
      {
        op: 'audit',
        entries: [
          {
            at: noon,
            actor: 'a',
            action: 'b',
            target: 'c',
            reason: 'd',
            requestId: 'e',
            details: { f: [1] },
          },
        ],
      },
    ])
    return produced.ids
  }

  const inNewPlace = async (test: (testStore: TestStore) => Promise<void>) => {
    const testStore = await createTestStore(given.name)
    try {
      await test(testStore)
    } finally {
      await testStore.drop()
    }
  }

  it('a restart keeps queues, items, leases, schedules, counts, archive and audit', async () => {
    await inNewPlace(async (testStore) => {
      const first = await testStore.open()
      await fill(first)
      const before = await everything(first)
      await first.close()
      const second = await testStore.open()
      expect(await everything(second)).toEqual(before)
      await expectConsistentStore(second)
    })
  })

  it('ids keep growing after a restart, even if the clock stood still and the newest items are gone', async () => {
    await inNewPlace(async (testStore) => {
      const first = await testStore.open()
      const ids = await fill(first)
      const all = { isWaiting: true, isScheduled: true, isLeased: true, countMax: 100 }
      await run(first, { op: 'clear', queue: 'work', ...all })
      await first.close()
      const second = await testStore.open()
      const produce = {
        op: 'produce',
        queue: 'work',
        partition: 0,
        items: newItems(1),
        now: noon - hour,
      } as const
      const { ids: later } = await run(second, produce)
      expect((later[0] ?? '') > (ids.at(-1) ?? '')).toBe(true)
    })
  })

  it('items that became due while the store was closed are processed immediately', async () => {
    await inNewPlace(async (testStore) => {
      const first = await testStore.open()
      await fill(first)
      await first.close()
      const second = await testStore.open()
      const { changes } = await run(second, { op: 'advance', now: noon + 2 * minute, countMax: 100 })
      expect(changes.map((change) => change.cause).toSorted()).toEqual(['lease-end', 'schedule'])
      await expectConsistentStore(second)
    })
  })

  it('lock tokens keep growing after a restart, and held locks stay held', async () => {
    await inNewPlace(async (testStore) => {
      const first = await testStore.open()
      const acquire = {
        op: 'acquire-lock',
        name: 'sweep',
        owner: 'a',
        now: noon,
        deadline: noon + minute,
      } as const
      const lock = await run(first, acquire)
      await first.close()
      const second = await testStore.open()
      expect(await run(second, { ...acquire, owner: 'b' })).toBeNull()
      if (lock === null) throw new Error('the lock was free')
      await run(second, { op: 'fence', lock })
      const next = await run(second, { ...acquire, owner: 'b', now: noon + minute, deadline: noon + hour })
      expect(next?.token).toBeGreaterThan(lock.token)
      await expectRefusal(run(second, { op: 'fence', lock }), 'LOCK_LOST')
    })
  })
})

describeStores('closing', (given) => {
  it('close waits for writes in progress and can be called twice', async () => {
    const testStore = await createTestStore(given.name)
    // Repeated, because this is a race between threads on some stores.
    const tries = given.name === 'SQLite file' ? 10 : 1
    try {
      for (let count = 1; count <= tries; count++) {
        const storage = await testStore.open()
        if (count === 1) await run(storage, { op: 'create-queue', queue: { name: 'work' }, now: noon })
        const items = newItems(2)
        const writes = Array.from({ length: 50 }, () =>
          run(storage, { op: 'produce', queue: 'work', partition: 0, items, now: noon }),
        )
        const closing = storage.close()
        expect((await Promise.all(writes)).flatMap((produced) => produced.ids)).toHaveLength(100)
        await closing
        await storage.close()
      }
      if (given.name === 'SQLite memory') return
      const again = await testStore.open()
      expect(await again.readCounts({})).toMatchObject([{ accepted: 100 * tries, waiting: 100 * tries }])
    } finally {
      await testStore.drop()
    }
  })

  it('calls after close are rejected with a clear error', async () => {
    const testStore = await createTestStore(given.name)
    try {
      const storage = await testStore.open()
      await storage.ping()
      await storage.close()
      await expectRefusal(run(storage, { op: 'advance', now: noon, countMax: 1 }), 'STORE_UNAVAILABLE')
      await expectRefusal(storage.listQueues({ countMax: 1 }), 'STORE_UNAVAILABLE')
      await expectRefusal(storage.ping(), 'STORE_UNAVAILABLE')
    } finally {
      await testStore.drop()
    }
  })
})
