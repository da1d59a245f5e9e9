/**
 * Two servers on one store, with people, workers and campaigns that act on dead letters in a random order.
 * Servers are killed during their writes.
 */

import { expect } from 'vitest'
import type { Letters } from '../../src/letters/letters.ts'
import { listLetters } from '../conformance/support/list-letters.ts'
import type { StoreFixture } from '../conformance/support/test-stores.ts'
import { day, minute, second } from '../make.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { killStorageAtWrite } from './failing-storage.ts'
import { ann, aSpec, createQueuePair, createTestSystem, lettersFrom, type TestSystem } from './test-system.ts'

type QueuePair = Readonly<{ queue: string; deadQueue: string }>
type Action = (letters: Letters) => Promise<unknown>

export class RandomOperators {
  readonly system: TestSystem
  /** Every letter that was captured. */
  readonly letterIds = new Set<string>()
  /** How often workers leased a redrive of each letter. */
  readonly leases = new Map<string, number>()
  readonly #given: StoreFixture
  readonly #random: SeededRandom
  readonly #pairs: readonly QueuePair[]
  readonly #servers: readonly Letters[]
  readonly #campaignIds: string[] = []

  static async create(given: StoreFixture, random: SeededRandom): Promise<RandomOperators> {
    const system = createTestSystem(given.storage, { campaignSteps: { frozenMax: 4, sentMax: 3 } })
    const backoff = { kind: 'fixed', delayUs: minute, jitter: 0.5 } as const
    const auto = await createQueuePair(system, { redrive: { mode: 'auto', redrivesMax: 3, backoff } })
    const manual = await createQueuePair(system)
    return new RandomOperators(given, random, system, [auto, manual])
  }

  private constructor(
    given: StoreFixture,
    random: SeededRandom,
    system: TestSystem,
    pairs: readonly QueuePair[],
  ) {
    this.#given = given
    this.#random = random
    this.system = system
    this.#pairs = pairs
    this.#servers = [system.letters, system.startServer().letters]
  }

  /** Executes random actions. The counts match the rows after each of them. */
  async act(count: number): Promise<void> {
    const { seed } = this.#random
    const actions = this.#listActions()
    for (let index = 0; index < count; index++) {
      const action = this.#random.pick(actions)
      try {
        await action(this.#pickServer())
      } catch (error) {
        // Accept a refused action and a killed server; any other error is a defect.
        const isExpected = error instanceof Error && /cannot be|killed/.test(error.message)
        if (!isExpected) throw new Error(`seed ${seed}, action ${index}`, { cause: error })
      }
      expect(await this.#given.storage.verify(), `seed ${seed}, action ${index}`).toEqual([])
    }
  }

  /** Lets time pass and workers work until every campaign and every redrive has ended. */
  async finish(): Promise<void> {
    await this.#resumeCampaigns()
    for (let rounds = 0; !(await this.#passOnce()); rounds++) {
      // A discard pauses after its canary until a person resumes it.
      await this.#resumeCampaigns()
      if (rounds > 300)
        throw new Error(`seed ${this.#random.seed} does not end: ${await this.#describeRest()}`)
    }
  }

  async #resumeCampaigns(): Promise<void> {
    const { campaigns } = this.system.letters
    for (const { id } of await campaigns.list({ countMax: 100 })) {
      await campaigns.resume(id, ann).catch(() => undefined)
    }
  }

  /** Without this, the policies of these queues would act in the next run. */
  async deleteQueues(): Promise<void> {
    for (const { queue, deadQueue } of this.#pairs) {
      await this.#given.storage.write([
        { op: 'delete-queue', name: queue },
        { op: 'delete-queue', name: deadQueue, isForced: true },
      ])
    }
  }

  /** Actions that are listed more often happen more often. */
  #listActions(): readonly Action[] {
    const runCampaigns: Action = (letters) => letters.passes.campaigns()
    const work: Action = () => this.#work(this.#random.pick(this.#pairs).queue)
    return [
      (letters) => this.#capture(letters),
      (letters) => letters.redrive(this.#pickLetters(), this.#pickRedriveOptions(), ann),
      (letters) => letters.discard(this.#pickLetters().slice(0, 2), ann),
      (letters) => letters.restore(this.#pickLetters(), ann),
      () => this.#clearDeadQueue(),
      () => this.#deleteLetterItems(),
      (letters) => this.#createCampaign(letters),
      (letters) => this.#changeCampaign(letters),
      runCampaigns,
      runCampaigns,
      runCampaigns,
      (letters) => letters.passes.auto(),
      (letters) => letters.passes.retention(),
      work,
      work,
      async () => this.system.tick(this.#random.pick([second, minute, minute, 16 * day])),
    ]
  }

  /** One of the two servers, or a third one that is killed at one of its next writes. */
  #pickServer(): Letters {
    const { next, below } = this.#random
    if (next() >= 0.2) return this.#random.pick(this.#servers)
    const killed = killStorageAtWrite(this.#given.storage, 1 + below(3), next() < 0.5 ? 'before' : 'after')
    return this.system.startServer(killed.storage).letters
  }

  #pickLetters(): string[] {
    return [...this.letterIds].filter(() => this.#random.next() < 0.2)
  }

  #pickRedriveOptions() {
    const { next } = this.#random
    return { target: null, edit: null, isDeadAllowed: next() < 0.3, isCapped: next() < 0.5 }
  }

  async #capture(letters: Letters): Promise<void> {
    const { queue, deadQueue } = this.#random.pick(this.#pairs)
    const captured = lettersFrom(queue, 5).map((letter) => ({
      ...letter,
      sourceId: `${queue}/${this.#random.below(60)}`,
      deadLetteredAt: this.system.now(),
    }))
    for (const { letterId } of await letters.capture(deadQueue, captured, ann)) this.letterIds.add(letterId)
  }

  /** How many letters left the archive for good, by retention. */
  async countPurged(): Promise<number> {
    const counts = await Promise.all(
      this.#pairs.map(({ deadQueue }) => this.#given.storage.readCounts({ queue: deadQueue })),
    )
    return counts.flat().reduce((sum, { purged }) => sum + purged, 0)
  }

  async #clearDeadQueue(): Promise<void> {
    const { deadQueue: queue } = this.#random.pick(this.#pairs)
    const isLeased = this.#random.next() < 0.5
    const what = { isWaiting: true, isScheduled: true, isLeased, countMax: 1 + this.#random.below(5) }
    await this.#given.run({ op: 'clear', queue, ...what, now: this.system.now() })
  }

  async #deleteLetterItems(): Promise<void> {
    const { deadQueue: queue } = this.#random.pick(this.#pairs)
    const letters = await this.#given.storage.getLetters(this.#pickLetters().slice(0, 3))
    const ids = letters
      .filter((letter) => letter.queue === queue && letter.state !== 'done')
      .map(({ id }) => id)
    await this.#given.run({ op: 'delete', queue, partition: 0, ids, now: this.system.now() })
  }

  async #createCampaign(letters: Letters): Promise<void> {
    const { next, below, pick } = this.#random
    const letterIds = this.#pickLetters()
    const spec = aSpec(pick(this.#pairs).deadQueue, {
      action: next() < 0.8 ? 'redrive' : 'discard',
      ...(next() < 0.5 && letterIds.length > 0 && { selection: { letterIds } }),
      canaryCount: below(4),
      ratePerSecond: next() < 0.5 ? 0 : 5,
      haltRatio: next(),
      isDeadAllowed: next() < 0.5,
    })
    const { id } = await letters.campaigns.create(spec, ann)
    this.#campaignIds.push(id)
  }

  async #changeCampaign({ campaigns }: Letters): Promise<void> {
    if (this.#campaignIds.length === 0) return
    const change = this.#random.pick(['pause', 'resume', 'cancel'] as const)
    await campaigns[change](this.#random.pick(this.#campaignIds), ann)
  }

  /** Leases up to 5 items, and completes, kills or deletes each of them. */
  async #work(queue: string): Promise<void> {
    const now = this.system.now()
    const holders = Array(5).fill('worker')
    const items = await this.#given.run({ op: 'lease', queue, partition: 0, holders, now })
    for (const { id, letterId } of items) {
      this.leases.set(letterId ?? '', (this.leases.get(letterId ?? '') ?? 0) + 1)
      const chance = this.#random.next()
      if (chance < 0.5) await this.#given.run({ op: 'complete', queue, partition: 0, ids: [id], now })
      else if (chance < 0.9) {
        const failed = { id, isDead: true, error: null, chance, availableAt: null }
        await this.#given.run({ op: 'retry', queue, partition: 0, items: [failed], now })
      } else await this.#given.run({ op: 'delete', queue, partition: 0, ids: [id] })
    }
  }

  /** Returns whether every campaign and every redrive has ended. */
  async #passOnce(): Promise<boolean> {
    this.system.tick(20 * second)
    await this.system.work()
    for (const { queue } of this.#pairs) await this.#work(queue)
    const campaigns = await this.system.letters.campaigns.list({ countMax: 100 })
    for (const { id, state } of campaigns) {
      if (state === 'halted') await this.system.letters.campaigns.resume(id, ann)
    }
    const leased = await this.#given.storage.countLetters({ filter: { states: ['leased'] }, by: [] })
    return campaigns.every(({ endedAt }) => endedAt !== null) && leased.length === 0
  }

  async #describeRest(): Promise<string> {
    const campaigns = await this.system.letters.campaigns.list({ countMax: 100 })
    const leased = await listLetters(this.#given.storage, {
      filter: { states: ['leased'] },
      order: 'deadLetteredAt',
      isDescending: false,
      countMax: 5,
      examinedMax: 1_000,
      bytes: 'none',
    })
    return JSON.stringify({ leased, campaigns }).slice(0, 4_000)
  }
}
