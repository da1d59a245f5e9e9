/**
 * kill -9 in the middle of dead-queue moves. After each kill the store is opened again, and every item
 * must be in its queue or in the dead queue, once; what was acknowledged before the kill must be there.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { day, hour, minute, noon, textOf } from '../../make.ts'
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
class Ledger {
  /** Batches that were acknowledged, with their sizes. */
  readonly #produced = new Map<string, number>()
  /** Acknowledged moves, by the id in the source queue. */
  readonly #moved = new Set<string>()
  /** Letters seen, and then cleared away: none of them may come back. */
  readonly #buried = new Set<string>()
  readonly #buriedFrom = new Set<string>()

  hear(lines: readonly Report[]): void {
    for (const line of lines) {
      if (line.is === 'produced') this.#produced.set(String(line.batch), Number(line.count))
      if (line.is === 'moved') for (const id of line.ids as string[]) this.#moved.add(id)
    }
  }

  /** Looks at everything, then clears the dead queue so that the next look is as quick. */
  async check(storage: Storage): Promise<void> {
    await expectConsistentStore(storage)
    const [alive, dead] = [await listAll(storage, queue), await listAll(storage, letters)]
    const names = [...alive, ...dead].map((item) => textOf(item.payload))
    expectUnique(names, 'items')
    expect(names.filter((name) => this.#buried.has(name)).slice(0, 5), 'items that came back').toEqual([])
    for (const letter of dead) {
      this.#buried.add(textOf(letter.payload))
      this.#buriedFrom.add(letter.sourceId ?? '')
    }
    const lost = [...this.#moved].filter((id) => !this.#buriedFrom.has(id))
    expect(lost.slice(0, 5), 'acknowledged moves that are not in the dead queue').toEqual([])

    const seen = new Map<string, number>()
    for (const name of new Set([...names, ...this.#buried])) {
      const [batch = ''] = name.split(/\.\d+\//)
      seen.set(batch, (seen.get(batch) ?? 0) + 1)
    }
    for (const [batch, count] of this.#produced) {
      expect(seen.get(batch), `items of the acknowledged batch ${batch}`).toBe(count)
    }
    for (const name of names) {
      const [batch = '', count] = name.split(/\.\d+\//)
      expect(seen.get(batch), `batch ${batch}, which came whole or not at all`).toBe(Number(count))
    }
    const all = { isWaiting: true, isScheduled: true, isLeased: true, countMax: 1_000_000 }
    await run(storage, { op: 'clear', queue: letters, ...all })
  }

  get movedCount(): number {
    return this.#moved.size
  }
}

export function describeKillsDuringDeadMoves(name: StoreName): void {
  describe(`kill -9 amid dead-queue moves (${name})`, needsOf(name), () => {
    it(`loses and duplicates nothing, ${kills} times at random points`, {
      ...needsOf(name),
      timeout: 60_000 + kills * 3_000,
    }, async () => {
      const place = await createTestStore(name)
      try {
        await withRandom(async (chance) => {
          await setUp(place)
          const ledger = new Ledger()
          const start = (round: number): TestProcess =>
            startTestProcess('dead-queue-moves', {
              target: place.target,
              queue,
              seed: chance.below(2 ** 31),
              startsAt: noon + round * day,
              workers: 3,
            })
          let inTheMiddle = 0
          await killRepeatedly(place, kills, {
            start,
            // Most kills fall into moves; some into the opening, which recovers from the last kill.
            waitForKill: async (child) => {
              const isEarly = chance.below(8) === 0
              if (!isEarly) await child.waitForReport('moved')
              await sleep(chance.below(isEarly ? 80 : 25))
            },
            check: async (storage, lines) => {
              const count = (is: string): number => lines.filter((line) => line.is === is).length
              if (count('moving') > count('moved')) inTheMiddle++
              ledger.hear(lines)
              await ledger.check(storage)
            },
          })
          // Or else the kills missed what they were aimed at, and the test proves nothing.
          expect(inTheMiddle).toBeGreaterThan(kills / 4)
          expect(ledger.movedCount).toBeGreaterThan(kills)

          const storage = await place.open()
          while ((await run(storage, { op: 'advance', now: noon + 1_000 * day, countMax: 1_000 })).isMore);
          expect(await listAll(storage, queue)).toEqual([])
          await ledger.check(storage)
        })
      } finally {
        await place.drop()
      }
    })
  })
}

async function setUp(place: TestStore): Promise<void> {
  const storage = await place.open()
  await storage.write([
    { op: 'create-queue', queue: { name: letters, partitions: 2 }, now: noon },
    {
      op: 'create-queue',
      queue: { name: queue, deadQueue: letters, leaseUs: minute, attemptsMax: 1, expireUs: hour },
      now: noon,
    },
  ])
  await storage.close()
}
