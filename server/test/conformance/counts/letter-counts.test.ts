/** Counts of letters by their properties are exact after any change and are read without reading letters. */

import { describe, expect, it } from 'vitest'
import { toCause } from '../../../src/core/dead-letters/cause.ts'
import { type Item, isLetter } from '../../../src/core/items/item.ts'
import type {
  CountedBy,
  CountedFilter,
  LetterCount,
  LetterCountsQuery,
} from '../../../src/storage/contract/letters.ts'
import { aFailure, bytes, day, hour, minute, newItems, noon, second } from '../../make.ts'
import { repeats, withRandom } from '../../random-test.ts'
import type { SeededRandom } from '../../seeded-random.ts'
import { executeSql } from '../support/execute-sql.ts'
import { sortCounts } from '../support/expect-consistent-letters.ts'
import { expectConsistentStore } from '../support/expect-consistent-store.ts'
import { matchesFilter } from '../support/expected-letters.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { listArchivedLetters, listLetters } from '../support/list-letters.ts'
import { listAll, run, toGauge } from '../support/store-reads.ts'
import {
  createTestStore,
  describeDurableStores,
  describeStores,
  type StoreFixture,
} from '../support/test-stores.ts'

const dimensions: readonly CountedBy[] = [
  'queue',
  'state',
  'group',
  'origin',
  'errorCode',
  'slug',
  'errorClass',
  'retryCount',
]

describeStores('counts of letters', (given) => {
  const actions = createLetterActions(given)
  const count = async (filter: CountedFilter, by: readonly CountedBy[] = []) =>
    sortCounts(await given.storage.countLetters({ filter, by }))
  const groups = async (filter: CountedFilter = {}, isEmptyToo = false) =>
    given.storage.listGroups({ filter, isEmptyToo, countMax: 100 })

  it('counts are empty without letters', async () => {
    const queue = await given.queue()
    await given.run({ op: 'produce', queue, partition: 0, items: newItems(3), now: noon })
    await given.run({
      op: 'import',
      queue,
      partition: 0,
      items: [{ payload: bytes('x'), sourceId: 's' }],
      now: noon,
    })
    expect(await count({}, dimensions)).toEqual([])
    expect(await groups({}, true)).toEqual([])
    expect(await given.storage.countOpenSince(noon - hour)).toBe(0)
  })

  it('the oldest open letter of a queue is found in every open state, and no other letter is', async () => {
    const { work, letters } = await actions.createQueues()
    const other = await actions.createQueues()
    const oldest = (...queues: string[]) => given.storage.readOldestOpen(queues)
    expect(await oldest(letters, 'no-such-queue', work)).toEqual([])
    const at = (minutes: number) => noon - minutes * minute
    const [a, b, c] = await actions.capture(
      letters,
      [3, 2, 1].map((minutes) => aLetter({ deadLetteredAt: at(minutes) })),
    )
    await actions.capture(other.letters, [aLetter({ deadLetteredAt: at(9) })])
    expect(await oldest(letters)).toEqual([{ queue: letters, diedAt: at(3) }])
    expect((await oldest(letters, other.letters)).length).toBe(2)
    const discard = (letterId: string) =>
      given.run({ op: 'discard', letters: [{ letterId }], reason: 'test', now: noon })
    await discard(a ?? '')
    expect(await oldest(letters)).toEqual([{ queue: letters, diedAt: at(2) }])
    await discard(b ?? '')
    await discard(c ?? '')
    expect(await oldest(letters)).toEqual([])
  })

  it('counts without dimensions return one sum', async () => {
    const { work, letters } = await actions.createQueues()
    await actions.produceDead(work, newItems(7))
    expect(await count({})).toEqual([{ count: 7 }])
    expect(await count({ queues: [letters] })).toEqual([{ count: 7 }])
    expect(await count({ queues: [work] })).toEqual([])
    expect(await count({ queues: [] })).toEqual([])
  })

  it('counts by a dimension return its values', async () => {
    const { work, letters } = await actions.createQueues()
    await actions.produceDead(work, newItems(2), { errorCode: 'r', errorClass: 'E', message: 'HTTP 500: x' })
    await actions.capture(letters, [aLetter({ retryCount: 14, failure: null })])
    expect(await count({}, ['origin'])).toEqual([
      { count: 1, origin: 'payments' },
      { count: 2, origin: work },
    ])
    expect(await count({}, ['errorCode'])).toEqual([
      { count: 1, errorCode: 'unknown' },
      { count: 2, errorCode: 'r' },
    ])
    expect(await count({}, ['slug'])).toEqual([
      { count: 1, slug: 'unknown' },
      { count: 2, slug: 'http_500' },
    ])
    expect(await count({}, ['errorClass'])).toEqual([
      { count: 1, errorClass: '' },
      { count: 2, errorClass: 'E' },
    ])
    // Ten and more are counted as ten.
    expect(await count({}, ['retryCount'])).toEqual([
      { count: 1, retryCount: 10 },
      { count: 2, retryCount: 0 },
    ])
    expect(await count({ retryCount: { min: 10 } })).toEqual([{ count: 1 }])
    expect(await count({ retryCount: { max: 9 } })).toEqual([{ count: 2 }])
  })

  it('counts follow every transition of a letter, also within one write', async () => {
    const { work, letters } = await actions.createQueues()
    const [letterId = ''] = await actions.produceDead(work, newItems(1))
    const states = async () => count({ queues: [letters] }, ['state', 'retryCount'])
    expect(await states()).toEqual([{ count: 1, retryCount: 0, state: 'waiting' }])
    const sent = await actions.redriveOne(letterId)
    expect(await states()).toEqual([{ count: 1, retryCount: 0, state: 'leased' }])
    await actions.declareDead(await actions.leaseOne(sent))
    expect(await states()).toEqual([{ count: 1, retryCount: 1, state: 'waiting' }])
    const at = { queue: letters, partition: 0 }
    const [held] = await given.run({ op: 'lease', ...at, holders: ['w'], now: noon })
    expect(await states()).toEqual([{ count: 1, retryCount: 1, state: 'leased' }])
    const items = [{ id: held?.id ?? '', availableAt: noon + hour, isDead: false, error: null }]
    await given.run({ op: 'retry', ...at, items, now: noon })
    expect(await states()).toEqual([{ count: 1, retryCount: 1, state: 'scheduled' }])
    await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
    expect(await states()).toEqual([{ count: 1, retryCount: 1, state: 'waiting' }])
    await actions.discard([letterId], noon + hour)
    expect(await states()).toEqual([{ count: 1, retryCount: 1, state: 'discarded' }])
    await given.storage.write([
      { op: 'archive', queue: letters, endedBefore: noon + day, countMax: 10, now: noon + day },
      { op: 'restore', letterIds: [letterId], now: noon + day },
    ])
    expect(await states()).toEqual([{ count: 1, retryCount: 1, state: 'waiting' }])
    await given.run({
      op: 'clear',
      queue: letters,
      isWaiting: true,
      isScheduled: true,
      isLeased: true,
      countMax: 10,
    })
    expect(await states()).toEqual([{ count: 1, retryCount: 1, state: 'discarded' }])
  })

  it('counts of letters are removed with their queue', async () => {
    const { work, letters } = await actions.createQueues()
    await actions.produceDead(work, newItems(3))
    await given.run({ op: 'delete-queue', name: work })
    expect(await count({}, ['queue'])).toEqual([{ count: 3, queue: letters }])
    await given.run({ op: 'delete-queue', name: letters, isForced: true })
    expect(await count({}, dimensions)).toEqual([])
    expect(await groups({}, true)).toEqual([])
    expect(await given.storage.countOpenSince(noon - hour)).toBe(0)
  })

  const runs = repeats({ 'SQLite memory': 4, 'SQLite file': 1, PostgreSQL: 2 }[given.name])
  it('counts equal a recount after random actions', {
    timeout: 60_000 + runs * 10_000,
  }, async () => {
    for (let run = 0; run < runs; run++) await withRandom(compareWithRecount, run)
  })

  async function compareWithRecount(random: SeededRandom): Promise<void> {
    const queues = await runRandomActions(given, random)
    const items = await Promise.all(queues.map((queue) => listAll(given.storage, queue)))
    const all = items.flat().filter(isLetter)
    for (const by of [[], ...dimensions.map((each) => [each]), dimensions]) {
      await expectRecounted(given, all, { filter: {}, by })
    }
    for (let turn = 0; turn < 25; turn++) {
      const by = dimensions.filter(() => random.below(3) === 0)
      await expectRecounted(given, all, { filter: aFilter(random, all), by })
    }
    const open = all.filter((each) => ['waiting', 'scheduled', 'dead'].includes(toGauge(each)))
    for (const since of [noon - hour, noon, noon + minute, noon + 3 * minute + 1, noon + hour]) {
      const young = open.filter(({ deadLetteredAt }) => (deadLetteredAt ?? 0) >= since)
      expect(await given.storage.countOpenSince(since)).toBe(young.length)
    }
    for (const name of queues.toReversed()) await given.run({ op: 'delete-queue', name, isForced: true })
  }

  describe('open letters since a time', () => {
    it('counts of open letters since a time are exact to the microsecond', async () => {
      const letters = await given.queue()
      const edges = [-1, 0, 1, second, minute - 1, minute, minute + 1, 2 * minute - 1, 2 * minute, hour]
      const times = edges.flatMap((us) => [noon + us, noon + us])
      await actions.capture(
        letters,
        times.map((deadLetteredAt) => aLetter({ deadLetteredAt })),
        noon + hour,
      )
      for (const since of edges.flatMap((us) => [noon + us - 1, noon + us, noon + us + 1])) {
        const expected = times.filter((at) => at >= since).length
        expect(await given.storage.countOpenSince(since), `since noon + ${since - noon}`).toBe(expected)
      }
    })

    it('open letters are waiting, scheduled or dead ones only', async () => {
      const { work, letters } = await actions.createQueues({}, { attemptsMax: 1 })
      const open = async (queues?: readonly string[]) => given.storage.countOpenSince(noon, queues)
      const [a = '', b = '', c = ''] = await actions.produceDead(work, newItems(4))
      await actions.capture(letters, [aLetter({ availableAt: noon + hour, deadLetteredAt: noon })])
      expect(await open()).toBe(5)
      const sent = await actions.redriveOne(a)
      expect(await open()).toBe(4)
      await actions.complete(await actions.leaseOne(sent))
      expect(await open()).toBe(4)
      await actions.discard([b])
      expect(await open()).toBe(3)
      const held = await actions.leaseOne({ queue: letters, partition: 0 })
      expect(held.rootId).toBe(c)
      expect(await open()).toBe(2)
      await actions.declareDead(held)
      expect(await open()).toBe(3)
      expect(await actions.readLetter(c)).toMatchObject({ state: 'dead' })
      expect(await open([letters])).toBe(3)
      expect(await open([work])).toBe(0)
      expect(await open([])).toBe(0)
      await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 10, now: noon })
      expect(await open()).toBe(2)
      await given.run({ op: 'restore', letterIds: [c], now: noon + 1 })
      expect(await open()).toBe(3)
    })

    it('open letters are counted by their time of death, not of their return', async () => {
      const { work } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const sent = await actions.redriveOne(letterId, noon + hour)
      await actions.declareDead(await actions.leaseOne(sent), null, noon + hour)
      expect(await given.storage.countOpenSince(noon)).toBe(1)
      expect(await given.storage.countOpenSince(noon + 1)).toBe(0)
    })
  })

  it('counts of open letters stay exact when old minute counts are merged', async () => {
    const place = await createTestStore(given.name)
    try {
      let now = noon
      const store = await place.open({ clock: { now: () => now } })
      const theirs = createLetterActions({ ...given, storage: store, run: (command) => run(store, command) })
      for (const queue of [{ name: 'letters' }, { name: 'work', deadQueue: 'letters' }]) {
        await run(store, { op: 'create-queue', queue, now: noon })
      }
      const old = await theirs.produceDead('work', newItems(6), undefined, noon)
      expect(await store.reconcile()).toEqual([])
      now = noon + 3 * day
      expect(await store.reconcile()).toEqual([])
      const young = await theirs.produceDead('work', newItems(3), undefined, now - minute)
      await theirs.discard([...old.slice(0, 1), ...young.slice(0, 1)], now)
      const sent = await theirs.redriveOne(old[1] ?? '', now)
      await theirs.declareDead(await theirs.leaseOne(sent, now), null, now)
      await theirs.redriveOne(old[2] ?? '', now)
      await run(store, { op: 'archive', queue: 'letters', endedBefore: now + 1, countMax: 10, now })
      await run(store, { op: 'restore', letterIds: old.slice(0, 1), now })
      expect(await store.countOpenSince(now - hour)).toBe(2)
      expect(await store.countOpenSince(now - minute)).toBe(2)
      expect(await store.countOpenSince(now - minute + 1)).toBe(0)
      await expectConsistentStore(store)
      expect(await store.reconcile()).toEqual([])
      await expectConsistentStore(store)
    } finally {
      await place.drop()
    }
  })

  it('arrivals are kept for a week, and the time of the last one longer', async () => {
    const place = await createTestStore(given.name)
    try {
      let now = noon
      const store = await place.open({ clock: { now: () => now } })
      const theirs = createLetterActions({ ...given, storage: store, run: (command) => run(store, command) })
      for (const queue of [{ name: 'letters' }, { name: 'work', deadQueue: 'letters' }]) {
        await run(store, { op: 'create-queue', queue, now: noon })
      }
      for (const at of [noon, noon + hour, noon + 2 * hour]) {
        await theirs.produceDead('work', newItems(2), undefined, at)
      }
      const group = async () => (await store.listGroups({ filter: {}, countMax: 1, isEmptyToo: false }))[0]
      const hours = async () =>
        (await store.groupArrivals([(await group())?.id ?? -1], noon - day)).map(({ hour: at }) => at - noon)
      now = noon + 6 * day
      await store.reconcile()
      expect(await hours()).toEqual([0, hour, 2 * hour])
      now = noon + 8 * day
      await store.reconcile()
      expect(await hours()).toEqual([2 * hour])
      expect(await group()).toMatchObject({ firstSeenAt: noon, lastSeenAt: noon + 2 * hour })
      await theirs.produceDead('work', newItems(1), undefined, now)
      await store.reconcile()
      expect(await hours()).toEqual([8 * day])
    } finally {
      await place.drop()
    }
  })
})

describeDurableStores('a count of letters that is wrong', (given) => {
  const actions = createLetterActions(given)

  it('a wrong count is reported and repaired', async () => {
    const { work, letters } = await actions.createQueues()
    await actions.produceDead(work, newItems(4))
    const minutes = given.storage.kind === 'sqlite' ? 'open_minutes' : 'open_letters'
    await executeSql(given.testStore.target, (schema) => `update ${schema}letter_counts set n = n + 2`)
    await executeSql(given.testStore.target, (schema) => `update ${schema}${minutes} set n = n + 3`)
    const differences = await given.storage.verify()
    for (const count of ['letters', 'open-minutes'] as const) {
      const found = differences.find((difference) => difference.count === count)
      expect(found).toMatchObject({ queue: letters, partition: -1, actual: 4 })
      expect(found?.counted).toBeGreaterThan(4)
    }
    expect(await given.storage.reconcile()).toEqual(differences)
    expect(await given.storage.verify()).toEqual([])
    expect(await given.storage.countLetters({ filter: {}, by: [] })).toEqual([{ count: 4 }])
    expect(await given.storage.countLetters({ filter: {}, by: ['origin'] })).toMatchObject([{ count: 4 }])
    expect(await given.storage.countOpenSince(noon)).toBe(4)
  })
})

async function expectRecounted(
  given: StoreFixture,
  all: readonly Item[],
  query: LetterCountsQuery,
): Promise<void> {
  const sums = new Map<string, LetterCount>()
  for (const letter of all.filter((each) => matchesFilter(each, query.filter))) {
    const cause = toCause(letter.failure, letter.origin ?? { name: '' })
    const facts = {
      queue: letter.queue,
      state: toGauge(letter),
      group: letter.groupId ?? -1,
      origin: cause.origin,
      errorCode: cause.errorCode,
      slug: cause.slug,
      errorClass: cause.errorClass,
      retryCount: Math.min(letter.retryCount, 10),
    }
    const of = Object.fromEntries(query.by.map((each) => [each, facts[each]])) as Omit<LetterCount, 'count'>
    const key = JSON.stringify(of)
    sums.set(key, { ...of, count: (sums.get(key)?.count ?? 0) + 1 })
  }
  expect(sortCounts(await given.storage.countLetters(query)), JSON.stringify(query)).toEqual(
    sortCounts([...sums.values()]),
  )
}

function aFilter(random: SeededRandom, all: readonly Item[]): CountedFilter {
  const some = <T>(values: readonly T[]): T[] => values.filter(() => random.below(2) === 0)
  const maybe = <T>(name: string, value: T): object => (random.below(4) === 0 ? { [name]: value } : {})
  const min = random.below(3)
  return {
    ...maybe('queues', some([...new Set(all.map(({ queue }) => queue))])),
    ...maybe('states', some(['waiting', 'scheduled', 'leased', 'done', 'dead', 'discarded'])),
    ...maybe('groupIds', some([...new Set(all.map(({ groupId }) => groupId))])),
    ...maybe('origins', some([...new Set(all.map(({ origin }) => origin?.name))])),
    ...maybe(
      'errorCodes',
      some(['http_503', 'http_410', 'retried', 'attempts', 'expired', 'outcome_unknown']),
    ),
    ...maybe('slugs', some(['http_503', 'gone', 'unknown', 'lease', 'what'])),
    ...maybe('errorClasses', some(['', 'A', 'B'])),
    ...maybe('retryCount', random.below(2) === 0 ? { min } : { min, max: min + random.below(3) }),
  }
}

/**
 * Runs random actions on letters in two queues, their dead queue and a queue of captured letters, and returns
 * the queues.
 */
async function runRandomActions(given: StoreFixture, random: SeededRandom): Promise<string[]> {
  const backoff = { kind: 'fixed', delayUs: minute, jitter: 0.2 } as const
  const redrive = { mode: 'auto', redrivesMax: 2, backoff } as const
  const letters = await given.queue({ partitions: 2, attemptsMax: 1, leaseTimeoutUs: minute, redrive })
  const elsewhere = await given.queue({ partitions: 2, attemptsMax: 1, leaseTimeoutUs: minute, redrive })
  const queues = [
    letters,
    elsewhere,
    await given.queue({
      deadQueue: letters,
      attemptsMax: 1,
      leaseTimeoutUs: minute,
      expireTimeoutUs: 5 * minute,
    }),
    await given.queue({ deadQueue: letters, partitions: 2, doneRetentionUs: minute, leaseTimeoutUs: second }),
  ] as const
  let now = noon
  for (let step = 0; step < 60; step++) {
    now += random.below(minute / 2)
    await runRandomAction({ given, random, queues, now })
  }
  return [...queues]
}

type RandomStep = Readonly<{
  given: StoreFixture
  random: SeededRandom
  queues: readonly [letters: string, elsewhere: string, work: string, other: string]
  now: number
}>

async function runRandomAction(step: RandomStep): Promise<void> {
  const { given, random, queues, now } = step
  const [letters, elsewhere, work, other] = queues
  const actions = createLetterActions(given)
  switch (random.below(10)) {
    case 0:
      await actions.produceDead(
        random.pick([work, other]),
        newItems(1 + random.below(4)),
        anError(random),
        now,
      )
      return
    case 1: {
      const failure = aFailure({ errorCode: random.pick(['http_503', 'http_410']), ...anError(random) })
      const letter = aLetter({ failure, retryCount: random.pick([0, 0, 9, 10, 11]) })
      await actions.capture(random.pick([letters, elsewhere]), [letter], now)
      return
    }
    case 2:
    case 3: {
      const queue = random.below(2) === 0 ? work : null
      const sent = (await pickLetters(step)).map((letterId) => ({ letterId, queue }))
      await actions.redrive([], { letters: sent, isCapped: false, isDeadAllowed: true, now })
      return
    }
    case 4:
      await actions.discard((await pickLetters(step)).slice(0, 2), now)
      return
    case 5:
      await given.run({ op: 'advance', now, countMax: 10 })
      return
    case 6: {
      const archive = { op: 'archive', queue: letters, endedBefore: now, countMax: 2, now } as const
      const archived = await listArchivedLetters(given.storage, { countMax: 5 })
      const letterIds = archived.map(({ item }) => item.rootId)
      await given.run(random.below(2) === 0 ? archive : { op: 'restore', letterIds, now })
      return
    }
    case 7: {
      if (random.below(3) > 0) return
      const all = { isWaiting: true, isScheduled: true, isLeased: true } as const
      await given.run({ op: 'clear', queue: random.pick(queues), partition: 0, ...all, countMax: 2 })
      return
    }
    default:
      await leaseAndSettle(step)
  }
}

async function leaseAndSettle({ given, random, queues, now }: RandomStep): Promise<void> {
  const queue = random.pick(queues)
  const at = { queue, partition: random.below(queue === queues[2] ? 1 : 2), now }
  const leased = await given.run({ op: 'lease', ...at, holders: ['w', 'w', 'w'] })
  const [one, two] = leased.map(({ id }) => id)
  if (one !== undefined) await given.run({ op: 'complete', ...at, ids: [one] })
  if (two !== undefined) {
    const isDead = random.below(2) === 0
    const items = [{ id: two, availableAt: null, isDead, error: anError(random) }]
    await given.run({ op: 'retry', ...at, items })
  }
}

function anError(random: SeededRandom) {
  return { errorClass: random.pick(['', 'A', 'B']), message: random.pick(['HTTP 503: x', 'gone', '']) }
}

async function pickLetters({ given, random }: RandomStep): Promise<string[]> {
  const page = await listLetters(given.storage, {
    filter: {},
    order: 'deadLetteredAt',
    isDescending: random.below(2) === 0,
    countMax: 50,
    examinedMax: 1_000,
    bytes: 'none',
  })
  return page.letters.map(({ rootId }) => rootId).filter(() => random.below(4) === 0)
}
