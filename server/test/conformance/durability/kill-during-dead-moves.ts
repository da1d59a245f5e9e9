/**
 * Kills a process with kill -9 during dead-queue moves, and opens the store again after each kill. Every
 * item is in its queue or in the dead queue, exactly once, and every acknowledged write is there.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { day, hour, minute, noon, toText } from '../../make.ts'
import { repeats, withRandom } from '../../random-test.ts'
import { type Report, startTestProcess, type TestProcess } from '../processes/start-process.ts'
import { expectConsistentStore, expectUnique } from '../support/expect-consistent-store.ts'
import { killRepeatedly } from '../support/kill-repeatedly.ts'
import { listAll, run } from '../support/store-reads.ts'
import { createTestStore, needsOf, type StoreName, type TestStore } from '../support/test-stores.ts'

const kills = repeats(100)
const queue = 'work'
const letters = 'letters'

/** Records what must survive the kills so far. */
class AcknowledgedWrites {
  /** Batches that were acknowledged, with their sizes. */
  readonly #produced = new Map<string, number>()
  /** Acknowledged moves, by the id in the source queue. */
  readonly #moved = new Set<string>()
  /** Letters that an earlier check saw and cleared: they must not come back. */
  readonly #clearedNames = new Set<string>()
  readonly #clearedSourceIds = new Set<string>()

  record(reports: readonly Report[]): void {
    for (const report of reports) {
      if (report.kind === 'produced') this.#produced.set(String(report.batch), Number(report.count))
      if (report.kind === 'moved') for (const id of report.ids as string[]) this.#moved.add(id)
    }
  }

  /** Checks the whole store, then clears the dead queue so that the next check is not slower. */
  async check(storage: Storage): Promise<void> {
    await expectConsistentStore(storage)
    const alive = await listAll(storage, queue)
    const dead = await listAll(storage, letters)
    const names = [...alive, ...dead].map((item) => toText(item.payload))
    expectUnique(names, 'items')
    expect(names.filter((name) => this.#clearedNames.has(name)).slice(0, 5), 'items that came back').toEqual(
      [],
    )
    for (const letter of dead) {
      this.#clearedNames.add(toText(letter.payload))
      this.#clearedSourceIds.add(letter.sourceId ?? '')
    }
    const lost = [...this.#moved].filter((id) => !this.#clearedSourceIds.has(id))
    expect(lost.slice(0, 5), 'acknowledged moves that are not in the dead queue').toEqual([])

    const seen = new Map<string, number>()
    for (const name of new Set([...names, ...this.#clearedNames])) {
      const [batch = ''] = name.split(/\.\d+\//)
      seen.set(batch, (seen.get(batch) ?? 0) + 1)
    }
    for (const [batch, count] of this.#produced) {
      expect(seen.get(batch), `items of the acknowledged batch ${batch}`).toBe(count)
    }
    for (const name of names) {
      const [batch = '', count] = name.split(/\.\d+\//)
      expect(seen.get(batch), `batch ${batch} is stored as a whole or not at all`).toBe(Number(count))
    }
    const all = { isWaiting: true, isScheduled: true, isLeased: true, countMax: 1_000_000 }
    const now = noon + 10_000 * day
    await run(storage, { op: 'clear', queue: letters, ...all, now })
    // Cleared letters are discarded. The archive takes them away, so that the next check is not slower.
    await run(storage, { op: 'archive', queue: letters, endedBefore: now + 1, countMax: 1_000_000, now })
    await run(storage, { op: 'purge-archive', queue: letters, archivedBefore: now + 1, countMax: 1_000_000 })
  }

  get movedCount(): number {
    return this.#moved.size
  }
}

export function describeKillsDuringDeadMoves(name: StoreName): void {
  describe(`kill -9 during dead-queue moves (${name})`, needsOf(name), () => {
    it('a process killed during dead-queue moves loses and duplicates no item', {
      ...needsOf(name),
      timeout: 60_000 + kills * 3_000,
    }, async () => {
      const testStore = await createTestStore(name)
      try {
        await withRandom(async (random) => {
          await setUp(testStore)
          const acknowledged = new AcknowledgedWrites()
          const start = (round: number): TestProcess =>
            startTestProcess('dead-queue-moves', {
              target: testStore.target,
              queue,
              seed: random.below(2 ** 31),
              startsAt: noon + round * day,
              workers: 3,
            })
          let killsDuringMoves = 0
          await killRepeatedly(testStore, kills, {
            start,
            // The random delay picks the moment of the kill: usually during a move, sometimes during the
            // recovery when the store opens.
            waitForKill: async (child) => {
              const isEarly = random.below(8) === 0
              if (!isEarly) await child.waitForReport('moved')
              await sleep(random.below(isEarly ? 80 : 25))
            },
            check: async (storage, reports) => {
              const count = (kind: string): number => reports.filter((report) => report.kind === kind).length
              if (count('moving') > count('moved')) killsDuringMoves++
              acknowledged.record(reports)
              await acknowledged.check(storage)
            },
          })
          // Otherwise the kills missed the moves, and the test proves nothing.
          expect(killsDuringMoves).toBeGreaterThan(kills / 4)
          expect(acknowledged.movedCount).toBeGreaterThan(kills / 2)

          const storage = await testStore.open()
          while ((await run(storage, { op: 'advance', now: noon + 1_000 * day, countMax: 1_000 })).isMore);
          expect(await listAll(storage, queue)).toEqual([])
          await acknowledged.check(storage)
        })
      } finally {
        await testStore.drop()
      }
    })
  })
}

async function setUp(testStore: TestStore): Promise<void> {
  const storage = await testStore.open()
  await storage.write([
    { op: 'create-queue', queue: { name: letters, partitions: 2 }, now: noon },
    {
      op: 'create-queue',
      queue: {
        name: queue,
        deadQueue: letters,
        leaseTimeoutUs: minute,
        attemptsMax: 1,
        expireTimeoutUs: hour,
      },
      now: noon,
    },
  ])
  await storage.close()
}
