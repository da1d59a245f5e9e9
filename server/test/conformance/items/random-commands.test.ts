/**
 * Runs random lists of commands on a store and on the reference model, and compares everything that can be
 * read. fast-check shrinks a failure to the shortest list that fails and prints it with its seed.
 */

import { expect, it } from 'vitest'
import { noDeadline } from '../../../src/core/dead-letters/letter.ts'
import type { NewQueue, QueuePolicy } from '../../../src/core/items/queue.ts'
import { buildQueue } from '../../../src/core/items/queue.ts'
import type { Archive } from '../../../src/storage/contract/archive.ts'
import type { ItemToImport, NewItem } from '../../../src/storage/contract/items.ts'
import fc from '../../fast-check.ts'
import { aFailure, anOrigin, bytes, hour, minute, noon, second } from '../../make.ts'
import { repeats } from '../../random-test.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { expectRefusal } from '../support/expect-refusal.ts'
import { type EndedAt, ReferenceModel } from '../support/reference-model.ts'
import { withoutGroup } from '../support/reference-rows.ts'
import { describeStores, type StoreFixture } from '../support/test-stores.ts'

/** Ids are chosen by index among all ids that a run has seen, also of items that are gone. */
type Step =
  | { do: 'produce'; items: NewItem[] }
  | { do: 'import'; items: (ItemToImport & { source?: number })[] }
  | { do: 'lease'; count: number }
  | { do: 'complete' | 'delete'; ids: number[] }
  | { do: 'extend'; ids: number[]; forUs: number }
  | { do: 'retry'; items: { id: number; delayUs: number | null; isDead: boolean; hasError: boolean }[] }
  | { do: 'advance'; countMax: number }
  | {
      do: 'clear'
      isWaiting: boolean
      isScheduled: boolean
      isLeased: boolean
      countMax: number
      isAll: boolean
    }
  | { do: 'archive'; countMax: number; ago: number; states: Archive['states'] }
  | { do: 'purge'; countMax: number; ago: number }
  | {
      do: 'redrive'
      letters: { id: number; target: number | null }[]
      isDeadAllowed: boolean
      isCapped: boolean
      isDueOnly: boolean
    }
  | { do: 'discard' | 'restore' | 'cancel' | 'prefetch'; ids: number[] }
  | { do: 'postpone'; ids: number[]; forUs: number }
  | { do: 'policy'; redrive: QueuePolicy['redrive'] }
  | { do: 'replan'; countMax: number }
  | { do: 'pause' }
  | { do: 'update'; attemptsMax: number; hasDeadQueue: boolean; leaseTimeoutUs: number }
type StepOf<Do extends Step['do']> = Extract<Step, { do: Do }>
type Timed = Step & { queue: number; partition: number; us: number }
type At = Readonly<{ queue: string; partition: number; now: number }>

const backoff = { kind: 'fixed', delayUs: 30 * second, jitter: 0 } as const
const anId = fc.nat(200)
const ids = fc.array(anId, { minLength: 1, maxLength: 3 })
const aDelay = fc.constantFrom(1, second, minute)
/** Optional fields are absent, not undefined. */
const optional: { requiredKeys: ['payload'] } = { requiredKeys: ['payload'] }
const plain = {
  payload: fc.uint8Array({ maxLength: 4 }),
  priority: fc.constantFrom(0, 0, 1, -1),
  attemptsMax: fc.constantFrom(0, 0, 1, 2),
  availableAt: fc.constantFrom(null, null, noon + 10 * second, noon + 5 * minute),
  expireDeadline: fc.constantFrom(noon + 20 * second, noon + hour),
  key: fc.option(fc.uint8Array({ maxLength: 2 })),
  headers: fc.constantFrom([], [['h', bytes('v')] as const, ['h', null] as const]),
}
const aNewItem: fc.Arbitrary<NewItem> = fc.record({ ...plain, lease: fc.constant({ holder: 'p' }) }, optional)
const anImportedItem: fc.Arbitrary<ItemToImport & { source?: number }> = fc.record(
  {
    ...plain,
    source: fc.nat(20),
    attempts: fc.nat(2),
    origin: fc.constant(anOrigin()),
    failure: fc.constantFrom(aFailure(), aFailure({ errorCode: 'http_410', message: 'gone: 5' })),
    history: fc.constant([aFailure({ message: 'the time before' })]),
    retryCount: fc.constantFrom(0, 1, 12),
    deadLetteredAt: fc.constant(noon - 1),
    lease: fc.constantFrom(null, { holder: 'i', deadline: noon + minute }),
  },
  optional,
)
const aStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('produce'), items: fc.array(aNewItem, { maxLength: 4 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('import'), items: fc.array(anImportedItem, { maxLength: 3 }) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('lease'), count: fc.nat(4) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('complete', 'complete', 'delete'), ids }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('extend'), ids, forUs: aDelay }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('retry'),
      items: fc.array(
        fc.record({ id: anId, delayUs: fc.option(aDelay), isDead: fc.boolean(), hasError: fc.boolean() }),
        { minLength: 1, maxLength: 3 },
      ),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('advance'), countMax: fc.constantFrom(1, 2, 100) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('clear'),
      isWaiting: fc.boolean(),
      isScheduled: fc.boolean(),
      isLeased: fc.boolean(),
      countMax: fc.constantFrom(1, 100),
      isAll: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('archive'),
      countMax: fc.constantFrom(1, 100),
      ago: aDelay,
      states: fc.constantFrom(undefined, undefined, ['discarded'], ['done', 'dead']),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('purge'), countMax: fc.constantFrom(1, 100), ago: aDelay }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('redrive'),
      letters: fc.array(
        fc.record({ id: fc.nat(20), target: fc.constantFrom(null, null, null, 0, 1, 2, 3) }),
        { minLength: 1, maxLength: 3 },
      ),
      isDeadAllowed: fc.boolean(),
      isCapped: fc.boolean(),
      isDueOnly: fc.constantFrom(false, false, true),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('discard', 'restore', 'restore', 'cancel'), ids }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('prefetch'),
      ids: fc.array(fc.nat(20), { minLength: 3, maxLength: 9 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('postpone'),
      ids: fc.array(fc.nat(20), { minLength: 1, maxLength: 9 }),
      forUs: fc.constantFrom(0, 1, second, minute),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('policy'),
      redrive: fc.record({
        mode: fc.constantFrom('auto', 'auto', 'manual'),
        redrivesMax: fc.nat(3),
        backoff: fc.constant(backoff),
      }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('replan'), countMax: fc.constantFrom(1, 2, 100) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pause') }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('update'),
      attemptsMax: fc.nat(2),
      hasDeadQueue: fc.boolean(),
      leaseTimeoutUs: fc.constantFrom(second, minute),
    }),
  },
) as fc.Arbitrary<Step>
const steps: fc.Arbitrary<Timed[]> = fc.array(
  fc
    .tuple(
      aStep,
      fc.record({
        queue: fc.nat(2),
        partition: fc.nat(1),
        us: fc.constantFrom(0, 1, second, 30 * second, -second),
      }),
    )
    .map(([step, at]) => ({ ...step, ...at })),
  { minLength: 5, maxLength: 60, size: 'max' },
)

describeStores('any list of commands', (given) => {
  const runs = repeats({ 'SQLite memory': 150, 'SQLite file': 15, PostgreSQL: 20 }[given.name])

  it('a store and the reference model agree after random commands', {
    timeout: 60_000 + runs * 2_000,
  }, async () => {
    let run = 0
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const session = await Session.start(given, `run-${++run}`)
        try {
          for (const step of list) await session.take(step)
          await session.compare()
          await expectConsistentStore(given.storage)
        } finally {
          await session.end()
        }
      }),
      { numRuns: runs, endOnFailure: given.name !== 'SQLite memory' },
    )
  })
})

class Session {
  readonly #given: StoreFixture
  readonly #names: readonly [work: string, keeps: string, letters: string]
  readonly #model = new ReferenceModel()
  readonly #ids = ['0'.repeat(27)]
  #now = noon
  #steps = 0

  static async start(given: StoreFixture, name: string): Promise<Session> {
    const session = new Session(given, [`${name}-work`, `${name}-keeps`, `${name}-letters`])
    const [work, keeps, letters] = session.#names
    const redrive = { mode: 'auto', redrivesMax: 2, backoff } as const
    await session.#create({ name: letters, partitions: 2, attemptsMax: 2, leaseTimeoutUs: minute, redrive })
    await session.#create({
      name: work,
      partitions: 2,
      deadQueue: letters,
      attemptsMax: 2,
      leaseTimeoutUs: minute,
    })
    // After a failed attempt, and after the end of a lease, its items wait.
    const retry = { kind: 'fixed', delayUs: 2 * second, jitter: 0 } as const
    const kept = { onDead: 'keep', doneRetentionUs: minute, leaseTimeoutUs: second, retry } as const
    await session.#create({ name: keeps, partitions: 2, ...kept })
    return session
  }

  constructor(given: StoreFixture, names: readonly [string, string, string]) {
    this.#given = given
    this.#names = names
  }

  /** Runs the step on the store, and then on the model. */
  async take(step: Timed): Promise<void> {
    this.#now += step.us
    const now = this.#now
    const queue = this.#names[step.queue] ?? this.#names[0]
    const at = { queue, partition: step.partition, now } as const
    const { run } = this.#given
    switch (step.do) {
      case 'produce': {
        const command = { op: 'produce', items: step.items, ...at } as const
        const produced = await run(command)
        this.#ids.push(...produced.ids)
        this.#model.produce(command, produced)
        break
      }
      case 'import':
        await this.#import(step.items, at)
        break
      case 'lease': {
        const holders = Array.from({ length: step.count }, (_, index) => `holder-${index}`)
        const command = { op: 'lease', holders, ...at } as const
        this.#model.lease(command, await run(command))
        break
      }
      case 'complete': {
        const command = { op: 'complete', ids: this.#idsOf(step.ids), ...at } as const
        this.#model.complete(command, await run(command))
        break
      }
      case 'delete': {
        const command = {
          op: 'delete',
          ids: this.#idsOf(step.ids),
          ...at,
        } as const
        if (this.#model.isRefused(command)) {
          await expectRefusal(run(command), 'LETTER_NOT_DISCARDABLE')
          break
        }
        const deleted = await run(command)
        this.#model.delete(command, deleted, await this.#endedAt())
        break
      }
      case 'extend': {
        const command = {
          op: 'extend',
          ids: this.#idsOf(step.ids),
          deadline: now + step.forUs,
          ...at,
        } as const
        this.#model.extend(command, await run(command))
        break
      }
      case 'retry':
        await this.#retry(step.items, at)
        break
      case 'advance': {
        const command = { op: 'advance', now, countMax: step.countMax } as const
        const advanced = await run(command)
        this.#ids.push(...advanced.changes.flatMap(({ id }) => id ?? []))
        this.#model.advance(command, advanced)
        break
      }
      case 'clear': {
        const { isWaiting, isScheduled, isLeased, countMax } = step
        const where = step.isAll ? {} : { partition: step.partition }
        const command = {
          op: 'clear',
          queue,
          isWaiting,
          isScheduled,
          isLeased,
          countMax,
          now,
          ...where,
        } as const
        const cleared = await run(command)
        this.#model.clear(command, cleared, await this.#endedAt())
        break
      }
      case 'archive': {
        const command = {
          op: 'archive',
          queue,
          endedBefore: now - step.ago,
          countMax: step.countMax,
          now,
          ...(step.states === undefined ? {} : { states: step.states }),
        } as const
        const archived = await run(command)
        this.#model.letters.archive(
          command,
          archived,
          await this.#given.storage.listItems({ queue, countMax: 10_000 }),
        )
        break
      }
      case 'purge': {
        const { ago, countMax } = step
        const command = { op: 'purge-archive', queue, archivedBefore: now - ago, countMax } as const
        this.#model.letters.purge(command, await run(command))
        break
      }
      case 'redrive':
        await this.#redrive(step, now)
        break
      case 'discard': {
        const letters = step.ids.map((id) => ({ letterId: this.#letterIdOf(id) }))
        const command = { op: 'discard', letters, reason: 'obsolete', now } as const
        this.#model.letters.discard(command, await run(command))
        break
      }
      case 'restore': {
        const letterIds = step.ids.map((id) => this.#letterIdOf(id))
        const command = { op: 'restore', letterIds, now } as const
        this.#model.letters.restore(command, await run(command))
        break
      }
      case 'cancel': {
        const letterIds = step.ids.map((id) => this.#letterIdOf(id))
        const command = { op: 'cancel-redrives', letterIds, now } as const
        this.#model.letters.cancel(command, await run(command))
        break
      }
      case 'prefetch':
        // Prefetched letters must not affect later results.
        await this.#given.storage.prefetchLetters(step.ids.map((id) => this.#letterIdOf(id)))
        break
      case 'postpone': {
        const letterIds = step.ids.map((id) => this.#letterIdOf(id))
        const command = { op: 'postpone-redrives', letterIds, until: now + step.forUs, now } as const
        this.#model.letters.postpone(command, await run(command))
        break
      }
      case 'policy':
        await this.#update(this.#names[2], { redrive: step.redrive })
        break
      case 'replan':
        // Mostly in the queue with an auto policy: a replan of other queues changes nothing.
        await this.#replan(step.partition === 0 ? this.#names[2] : queue, step.countMax)
        break
      case 'pause':
        await this.#update(queue, { isPaused: !this.#model.queues.get(queue)?.isPaused })
        break
      case 'update':
        await this.#updateWork(step)
    }
    // Comparing is expensive on PostgreSQL and cheap in memory.
    const isCheap = this.#given.name === 'SQLite memory'
    if (isCheap || ++this.#steps % 10 === 0) await this.compare()
  }

  async #import(given: StepOf<'import'>['items'], at: At): Promise<void> {
    const { run } = this.#given
    // A source id is often the id of an item, as if its move to the dead queue was repeated. Only a moved
    // letter can have such a source id there.
    const letter = at.queue === this.#names[2] ? { origin: anOrigin() } : {}
    const items = given.map(({ source, ...item }) =>
      source === undefined ? item : { ...item, sourceId: this.#idOf(source), ...letter },
    )
    const command = { op: 'import', items, ...at } as const
    const takesLetters = this.#model.queues.get(at.queue)?.deadQueue === null
    if (!takesLetters && items.some(({ origin }) => origin != null)) {
      await expectRefusal(run(command), 'DEAD_QUEUE_INVALID')
      return
    }
    const imported = await run(command)
    this.#ids.push(...imported.flatMap(({ id }) => id ?? []))
    this.#model.import(command, imported)
  }

  async #retry(given: StepOf<'retry'>['items'], at: At): Promise<void> {
    const items = given.map(({ id, delayUs, isDead, hasError }) => ({
      id: this.#idOf(id),
      availableAt: delayUs === null ? null : at.now + delayUs,
      isDead,
      error: hasError ? { errorCode: 'reported', errorClass: 'Error', message: 'no', stack: '' } : null,
    }))
    const command = { op: 'retry', items, ...at } as const
    const settled = await this.#given.run(command)
    if (settled.isSettled) this.#ids.push(...settled.changes.flatMap(({ id }) => id ?? []))
    this.#model.retry(command, settled)
  }

  async #redrive(step: StepOf<'redrive'>, now: number): Promise<void> {
    const { isDeadAllowed, isCapped, isDueOnly } = step
    const letters = step.letters.map(({ id, target }) => ({
      letterId: this.#letterIdOf(id),
      queue: target === null ? null : (this.#names[target] ?? 'nowhere'),
    }))
    const rules = { isDeadAllowed, isCapped, isDueOnly }
    const command = { op: 'redrive', letters, ...rules, actor: 'ann', now } as const
    const redriven = await this.#given.run(command)
    this.#ids.push(...redriven.flatMap((each) => (each.isStarted ? [each.id] : [])))
    this.#model.letters.redrive(command, redriven)
  }

  async #replan(queue: string, countMax: number): Promise<void> {
    const command = { op: 'replan-redrives', queue, countMax, now: this.#now } as const
    const replanned = await this.#given.run(command)
    const stored = await this.#given.storage.getQueue(queue)
    if (stored === null) throw new Error(`queue ${queue} does not exist`)
    this.#model.letters.replan(command, replanned, stored)
  }

  async #updateWork({ attemptsMax, leaseTimeoutUs, hasDeadQueue }: StepOf<'update'>): Promise<void> {
    const [work, , letters] = this.#names
    const changes = { attemptsMax, leaseTimeoutUs, deadQueue: hasDeadQueue ? letters : null }
    const isAdded = hasDeadQueue && this.#model.queues.get(work)?.deadQueue === null
    if (isAdded && this.#model.hasOrHadLetters(work)) {
      await expectRefusal(this.#update(work, changes), 'DEAD_QUEUE_INVALID')
    } else await this.#update(work, changes)
  }

  async compare(): Promise<void> {
    const { storage } = this.#given
    for (const queue of this.#names) {
      const [items, archive, counts] = await Promise.all([
        storage.listItems({ queue, countMax: 10_000 }),
        storage.listArchive({ queue, countMax: 10_000 }),
        storage.readCounts({ queue }),
      ])
      expect(items.map(withoutGroup)).toEqual(this.#model.items(queue))
      expect(archive.map(({ item, archivedAt }) => ({ item: withoutGroup(item), archivedAt }))).toEqual(
        this.#model.archive(queue),
      )
      expect(counts).toMatchObject(this.#model.counts(queue))
    }
    const nextDueAt = await storage.readNextDueAt()
    expect(nextDueAt === noDeadline ? null : nextDueAt).toBe(this.#model.nextDueAt())
  }

  async end(): Promise<void> {
    const [work, keeps, letters] = this.#names
    await this.#given.storage.write(
      [work, keeps, letters].map((name) => ({ op: 'delete-queue', name, isForced: true }) as const),
    )
  }

  async #create(queue: NewQueue): Promise<void> {
    await this.#given.run({ op: 'create-queue', queue, now: noon })
    this.#model.queues.set(queue.name, buildQueue(queue, noon))
  }

  async #update(name: string, changes: Partial<NewQueue>): Promise<void> {
    const queue = await this.#given.run({ op: 'update-queue', name, changes, now: this.#now })
    this.#model.queues.set(name, queue)
  }

  /** A command without a time may have ended redrives: read the times from the letters. */
  async #endedAt(): Promise<EndedAt> {
    const letters = await this.#given.storage.getLetters(this.#model.letterIds())
    const times = new Map(letters.map((letter) => [letter.rootId, letter.updatedAt]))
    return (rootId) => times.get(rootId) ?? Number.NaN
  }

  #letterIdOf(number: number): string {
    const letterIds = this.#model.letterIds()
    return letterIds[number % (letterIds.length + 1)] ?? '0'.repeat(27)
  }

  #idOf(number: number): string {
    // The newest ids come first, because their items are the most likely to be alive.
    return this.#ids.at(-1 - (number % this.#ids.length)) ?? ''
  }

  #idsOf(numbers: readonly number[]): string[] {
    return numbers.map((number) => this.#idOf(number))
  }
}
