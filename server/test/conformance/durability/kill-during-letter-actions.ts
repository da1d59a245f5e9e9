/**
 * Kills a process with kill -9 during every action on dead letters, and opens the store again after each
 * kill. Every letter exists once, live or archived, in one state; every redrive in progress has exactly one
 * item; every count is right; and every acknowledged change is there.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Item } from '../../../src/core/items/item.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { day, hour, minute, noon, toText } from '../../make.ts'
import { repeats, withRandom } from '../../random-test.ts'
import { type Report, startTestProcess, type TestProcess } from '../processes/start-process.ts'
import { expectConsistentStore, expectUnique } from '../support/expect-consistent-store.ts'
import { killRepeatedly } from '../support/kill-repeatedly.ts'
import { listAll } from '../support/store-reads.ts'
import { createTestStore, needsOf, type StoreName, type TestStore } from '../support/test-stores.ts'

const kills = repeats(10)
const work = 'work'
const letters = 'letters'
const outcomes: Readonly<Record<string, string>> = { complete: 'resolved', lose: 'unknown', return: 'failed' }

/** Records what the store acknowledged to the killed processes, per letter. */
class AcknowledgedChanges {
  readonly #produced = new Set<string>()
  /** Items that may have been completed or deleted before they ever died. */
  readonly #settled = new Set<string>()
  readonly #started = new Map<string, number>()
  readonly #ended = new Map<string, string>()
  killsDuringActions = 0
  acknowledgedCount = 0

  record(reports: readonly Report[]): void {
    const count = (kind: string): number => reports.filter((report) => report.kind === kind).length
    if (count('doing') > count('done')) this.killsDuringActions++
    this.acknowledgedCount += count('did')
    for (const report of reports) {
      if (report.kind === 'produced') addAll(this.#produced, report.names)
      if (report.kind === 'doing') addAll(this.#settled, report.names ?? [])
      if (report.kind === 'did') this.#recordAction(report)
    }
  }

  #recordAction({ action, letterId, number, letters = [] }: Report): void {
    const one = letterId === undefined ? [] : [[letterId, number]]
    for (const [id, redrive] of [...one, ...(letters as unknown[][])]) {
      if (id !== null) this.#recordRedrive(String(action), String(id), Number(redrive))
    }
  }

  #recordRedrive(action: string, letterId: string, number: number): void {
    const outcome = outcomes[action]
    if (action === 'redrive') this.#started.set(letterId, Math.max(number, this.#started.get(letterId) ?? 0))
    if (outcome !== undefined) this.#ended.set(`${letterId}/${number}`, outcome)
  }

  async check(storage: Storage): Promise<void> {
    await expectConsistentStore(storage)
    const live = await listAll(storage, letters)
    const archived = (await storage.listArchive({ queue: letters, countMax: 100_000 })).map(
      ({ item }) => item,
    )
    const all = [...live, ...archived]
    expectUnique(
      all.map(({ rootId }) => rootId),
      'letters, live and archived,',
    )
    expectUnique(
      all.map(({ sourceId }) => sourceId ?? ''),
      'deaths',
    )
    const items = await listAll(storage, work)
    this.#expectItemsHaveLetters(items, live)
    this.#expectNothingLost(items, all)
    await this.#expectIdsRecorded(storage, all)
    this.#expectAcknowledged(new Map(all.map((letter) => [letter.rootId, letter])))
  }

  #expectItemsHaveLetters(items: readonly Item[], live: readonly Item[]): void {
    for (const item of items) {
      if (item.letterId === null) continue
      const letter = live.find(({ rootId }) => rootId === item.letterId)
      const record = letter?.letter?.redrives[0]
      expect({ number: record?.number, outcome: record?.outcome }, `letter of item ${item.id}`).toEqual({
        number: item.retryCount,
        outcome: null,
      })
    }
  }

  /** Every acknowledged item is a letter or still an item, unless it was settled before it died. */
  /** The ids are written in the transactions of the redrives and of the moves to the dead queue. */
  async #expectIdsRecorded(storage: Storage, all: readonly Item[]): Promise<void> {
    const redriven = all.flatMap(({ rootId, letter }) =>
      (letter?.redrives ?? []).map(({ target }) => `${target.id} ${rootId}`),
    )
    const earlier = all.flatMap(({ rootId, sourceId, history }) =>
      history.flatMap(({ itemId }) =>
        itemId === undefined || itemId === sourceId ? [] : [`${itemId} ${rootId}`],
      ),
    )
    const wanted = [...redriven, ...earlier]
    const ids = [...new Set(wanted.map((each) => each.split(' ')[0] ?? ''))]
    const known = new Set((await storage.findLetterIds(ids)).map(({ id, letterId }) => `${id} ${letterId}`))
    expect(wanted.filter((each) => !known.has(each)).slice(0, 5), 'ids that lead to no letter').toEqual([])
  }

  #expectNothingLost(items: readonly Item[], all: readonly Item[]): void {
    const names = all.map(({ payload }) => toText(payload))
    expectUnique(names, 'names of letters')
    const there = new Set([...names, ...items.map(({ payload }) => toText(payload))])
    const lost = [...this.#produced].filter((name) => !there.has(name) && !this.#settled.has(name))
    expect(lost.slice(0, 5), 'acknowledged items that are nowhere').toEqual([])
  }

  #expectAcknowledged(byId: ReadonlyMap<string, Item>): void {
    for (const [letterId, number] of this.#started) {
      const newest = byId.get(letterId)?.letter?.redrives[0]?.number ?? 0
      expect(newest, `redrive ${number} of ${letterId}`).toBeGreaterThanOrEqual(number)
    }
    for (const [redrive, outcome] of this.#ended) {
      const [letterId = '', number] = redrive.split('/')
      const records = byId.get(letterId)?.letter?.redrives ?? []
      const record = records.find((each) => each.number === Number(number))
      // A letter keeps only its newest redrives.
      if (record !== undefined || records.length < 20)
        expect(record?.outcome, `redrive ${redrive}`).toBe(outcome)
    }
  }
}

export function describeKillsDuringLetterActions(name: StoreName): void {
  describe(`kill -9 during actions on dead letters (${name})`, needsOf(name), () => {
    it('a process killed during actions on letters leaves every letter in exactly one state', {
      ...needsOf(name),
      timeout: 60_000 + kills * 5_000,
    }, async () => {
      const testStore = await createTestStore(name)
      try {
        await withRandom(async (random) => {
          await setUp(testStore)
          const acknowledged = new AcknowledgedChanges()
          const start = (round: number): TestProcess =>
            startTestProcess('letter-lifecycle', {
              target: testStore.target,
              work,
              letters,
              seed: random.below(2 ** 31),
              startsAt: noon + round * day,
              workers: 3,
            })
          await killRepeatedly(testStore, kills, {
            start,
            waitForKill: async (child) => {
              await child.waitForReport('did')
              // The random delay picks the moment of the kill.
              await sleep(20 + random.below(100))
            },
            check: async (storage, reports) => {
              acknowledged.record(reports)
              await acknowledged.check(storage)
            },
          })
          // Otherwise the kills missed the actions, and the test proves nothing.
          expect(acknowledged.killsDuringActions).toBeGreaterThan(kills / 4)
          expect(acknowledged.acknowledgedCount).toBeGreaterThan(kills)
        })
      } finally {
        await testStore.drop()
      }
    })
  })
}

function addAll(names: Set<string>, added: unknown): void {
  for (const name of added as string[]) names.add(name)
}

async function setUp(testStore: TestStore): Promise<void> {
  const storage = await testStore.open()
  const backoff = { kind: 'fixed', delayUs: minute, jitter: 0.2 } as const
  await storage.write([
    {
      op: 'create-queue',
      queue: { name: letters, partitions: 2, redrive: { mode: 'auto', redrivesMax: 3, backoff } },
      now: noon,
    },
    {
      op: 'create-queue',
      queue: {
        name: work,
        deadQueue: letters,
        leaseTimeoutUs: minute,
        attemptsMax: 2,
        expireTimeoutUs: hour,
      },
      now: noon,
    },
  ])
  await storage.close()
}
