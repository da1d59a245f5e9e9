/** Counts of letters by what they have in common are exact, whatever happened, and cost no look at the letters. */
import { describe, expect, it } from 'vitest'
import { anyClass, causeOf } from '../../src/core/cause.ts'
import { type Item, isLetter } from '../../src/core/item.ts'
import type {
  CountedBy,
  CountedFilter,
  GroupFacts,
  LetterCount,
  LetterCountsQuery,
  LetterCursor,
  LetterOrder,
  LettersPage,
} from '../../src/storage/letter-store.ts'
import { aFailure, anOrigin, bytes, day, hour, minute, newItems, noon, second } from '../make.ts'
import { byChance, type Chance, repeats } from './chance.ts'
import { aLetter, letterActs } from './letter-acts.ts'
import { isMeant } from './letter-filter.ts'
import { inOrder } from './letters-oracle.ts'
import { expectSound } from './oracle.ts'
import { executeRaw } from './raw.ts'
import { gaugeOf, listAll, run } from './store-facts.ts'
import { createPlace, describeDurableStores, describeStores, type Given } from './stores.ts'

const dimensions: readonly CountedBy[] = [
  'queue',
  'state',
  'group',
  'origin',
  'reason',
  'slug',
  'errorClass',
  'redrives',
]
const causesKept = 5_000
const groupsKept = 10_000

describeStores('counts of letters', (given) => {
  const acts = letterActs(given)
  const count = async (filter: CountedFilter, by: readonly CountedBy[] = []) =>
    inOrder(await given.storage.countLetters({ filter, by }))
  const groups = async (filter: CountedFilter = {}, isEmptyToo = false) =>
    given.storage.listGroups({ filter, isEmptyToo, countMax: 100 })

  it('are none where there are no letters', async () => {
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

  it('by nothing: one sum', async () => {
    const { work, letters } = await acts.queues()
    await acts.bury(work, newItems(7))
    expect(await count({})).toEqual([{ count: 7 }])
    expect(await count({ queues: [letters] })).toEqual([{ count: 7 }])
    expect(await count({ queues: [work] })).toEqual([])
    expect(await count({ queues: [] })).toEqual([])
  })

  it('by each dimension have that one, and what it is', async () => {
    const { work, letters } = await acts.queues()
    await acts.bury(work, newItems(2), { reason: 'r', errorClass: 'E', message: 'HTTP 500: x' })
    await acts.capture(letters, [aLetter({ redrives: 14, failure: null })])
    expect(await count({}, ['origin'])).toEqual([
      { count: 1, origin: 'payments' },
      { count: 2, origin: work },
    ])
    expect(await count({}, ['reason'])).toEqual([
      { count: 1, reason: 'unknown' },
      { count: 2, reason: 'r' },
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
    expect(await count({}, ['redrives'])).toEqual([
      { count: 1, redrives: 10 },
      { count: 2, redrives: 0 },
    ])
    expect(await count({ redrives: { min: 10 } })).toEqual([{ count: 1 }])
    expect(await count({ redrives: { max: 9 } })).toEqual([{ count: 2 }])
  })

  it('change with every step of a letter’s life, also in one write', async () => {
    const { work, letters } = await acts.queues()
    const [letterId = ''] = await acts.bury(work, newItems(1))
    const states = async () => count({ queues: [letters] }, ['state', 'redrives'])
    expect(await states()).toEqual([{ count: 1, redrives: 0, state: 'waiting' }])
    const sent = await acts.send(letterId)
    expect(await states()).toEqual([{ count: 1, redrives: 0, state: 'leased' }])
    await acts.declareDead(await acts.take(sent))
    expect(await states()).toEqual([{ count: 1, redrives: 1, state: 'waiting' }])
    const at = { queue: letters, partition: 0 }
    const [held] = await given.run({ op: 'lease', ...at, holders: ['w'], now: noon })
    expect(await states()).toEqual([{ count: 1, redrives: 1, state: 'leased' }])
    const items = [{ id: held?.id ?? '', availableAt: noon + hour, isDead: false, error: null }]
    await given.run({ op: 'retry', ...at, items, now: noon })
    expect(await states()).toEqual([{ count: 1, redrives: 1, state: 'scheduled' }])
    await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
    expect(await states()).toEqual([{ count: 1, redrives: 1, state: 'waiting' }])
    await acts.discard([letterId], noon + hour)
    expect(await states()).toEqual([{ count: 1, redrives: 1, state: 'discarded' }])
    await given.storage.write([
      { op: 'archive', queue: letters, endedBefore: noon + day, countMax: 10, now: noon + day },
      { op: 'restore', letterIds: [letterId], now: noon + day },
    ])
    expect(await states()).toEqual([{ count: 1, redrives: 1, state: 'waiting' }])
    await given.run({
      op: 'clear',
      queue: letters,
      isWaiting: true,
      isScheduled: true,
      isLeased: true,
      countMax: 10,
    })
    expect(await states()).toEqual([])
  })

  it('go with their queue', async () => {
    const { work, letters } = await acts.queues()
    await acts.bury(work, newItems(3))
    await given.run({ op: 'delete-queue', name: work })
    expect(await count({}, ['queue'])).toEqual([{ count: 3, queue: letters }])
    await given.run({ op: 'delete-queue', name: letters })
    expect(await count({}, dimensions)).toEqual([])
    expect(await groups({}, true)).toEqual([])
    expect(await given.storage.countOpenSince(noon - hour)).toBe(0)
  })

  const runs = repeats({ 'SQLite memory': 4, 'SQLite file': 1, PostgreSQL: 2 }[given.name])
  it(`equal a recount after anything, ${runs} times by chance`, {
    timeout: 60_000 + runs * 10_000,
  }, async () => {
    for (let run = 0; run < runs; run++) {
      await byChance(async (chance) => {
        const queues = await anyLife(given, chance)
        const all: Item[] = []
        for (const queue of queues) all.push(...(await listAll(given.storage, queue)).filter(isLetter))
        for (const by of [[], ...dimensions.map((each) => [each]), dimensions]) {
          await expectRecounted(given, all, { filter: {}, by })
        }
        for (let turn = 0; turn < 25; turn++) {
          const by = dimensions.filter(() => chance.below(3) === 0)
          await expectRecounted(given, all, { filter: aFilter(chance, all), by })
        }
        for (const since of [noon - hour, noon, noon + minute, noon + 3 * minute + 1, noon + hour]) {
          const open = all.filter((each) => ['waiting', 'scheduled', 'dead'].includes(gaugeOf(each)))
          const young = open.filter(({ diedAt }) => (diedAt ?? 0) >= since)
          expect(await given.storage.countOpenSince(since)).toBe(young.length)
        }
        for (const queue of queues.toReversed()) await given.run({ op: 'delete-queue', name: queue })
      })
    }
  })

  describe('of open letters since a time', () => {
    it('are exact to the microsecond, at the edges of minutes and within them', async () => {
      const letters = await given.queue()
      const edges = [-1, 0, 1, second, minute - 1, minute, minute + 1, 2 * minute - 1, 2 * minute, hour]
      const times = edges.flatMap((us) => [noon + us, noon + us])
      await acts.capture(
        letters,
        times.map((diedAt) => aLetter({ diedAt })),
        noon + hour,
      )
      for (const since of edges.flatMap((us) => [noon + us - 1, noon + us, noon + us + 1])) {
        const expected = times.filter((at) => at >= since).length
        expect(await given.storage.countOpenSince(since), `since noon + ${since - noon}`).toBe(expected)
      }
    })

    it('have what waits, is scheduled or dead, and not what is under way, held, resolved or given up', async () => {
      const { work, letters } = await acts.queues({}, { attemptsMax: 1 })
      const open = async (queues?: readonly string[]) => given.storage.countOpenSince(noon, queues)
      const [a = '', b = '', c = ''] = await acts.bury(work, newItems(4))
      await acts.capture(letters, [aLetter({ availableAt: noon + hour, diedAt: noon })])
      expect(await open()).toBe(5)
      const sent = await acts.send(a)
      expect(await open()).toBe(4)
      await acts.complete(await acts.take(sent))
      expect(await open()).toBe(4)
      await acts.discard([b])
      expect(await open()).toBe(3)
      const held = await acts.take({ queue: letters, partition: 0 })
      expect(held.rootId).toBe(c)
      expect(await open()).toBe(2)
      await acts.declareDead(held)
      expect(await open()).toBe(3)
      expect(await acts.letter(c)).toMatchObject({ state: 'dead' })
      expect(await open([letters])).toBe(3)
      expect(await open([work])).toBe(0)
      expect(await open([])).toBe(0)
      await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 10, now: noon })
      expect(await open()).toBe(2)
      await given.run({ op: 'restore', letterIds: [c], now: noon + 1 })
      expect(await open()).toBe(3)
    })

    it('count a letter by when it died, not by when it came back', async () => {
      const { work } = await acts.queues()
      const [letterId = ''] = await acts.bury(work, newItems(1))
      const sent = await acts.send(letterId, noon + hour)
      await acts.declareDead(await acts.take(sent), null, noon + hour)
      expect(await given.storage.countOpenSince(noon)).toBe(1)
      expect(await given.storage.countOpenSince(noon + 1)).toBe(0)
    })
  })

  it('stay exact as days pass and what is counted by the minute is tidied up', async () => {
    const place = await createPlace(given.name)
    try {
      let now = noon
      const store = await place.open({ clock: { now: () => now } })
      const theirs = letterActs({ ...given, storage: store, run: (command) => run(store, command) })
      for (const queue of [{ name: 'letters' }, { name: 'work', deadQueue: 'letters' }]) {
        await run(store, { op: 'create-queue', queue, now: noon })
      }
      const old = await theirs.bury('work', newItems(6), undefined, noon)
      expect(await store.reconcile()).toEqual([])
      now = noon + 3 * day
      expect(await store.reconcile()).toEqual([])
      const young = await theirs.bury('work', newItems(3), undefined, now - minute)
      await theirs.discard([...old.slice(0, 1), ...young.slice(0, 1)], now)
      const sent = await theirs.send(old[1] ?? '', now)
      await theirs.declareDead(await theirs.take(sent, now), null, now)
      await theirs.send(old[2] ?? '', now)
      await run(store, { op: 'archive', queue: 'letters', endedBefore: now + 1, countMax: 10, now })
      await run(store, { op: 'restore', letterIds: old.slice(0, 1), now })
      expect(await store.countOpenSince(now - hour)).toBe(2)
      expect(await store.countOpenSince(now - minute)).toBe(2)
      expect(await store.countOpenSince(now - minute + 1)).toBe(0)
      await expectSound(store)
      expect(await store.reconcile()).toEqual([])
      await expectSound(store)
    } finally {
      await place.drop()
    }
  })

  it('of arrivals are kept for a week, and when the last one was for longer', async () => {
    const place = await createPlace(given.name)
    try {
      let now = noon
      const store = await place.open({ clock: { now: () => now } })
      const theirs = letterActs({ ...given, storage: store, run: (command) => run(store, command) })
      for (const queue of [{ name: 'letters' }, { name: 'work', deadQueue: 'letters' }]) {
        await run(store, { op: 'create-queue', queue, now: noon })
      }
      for (const at of [noon, noon + hour, noon + 2 * hour]) {
        await theirs.bury('work', newItems(2), undefined, at)
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
      await theirs.bury('work', newItems(1), undefined, now)
      await store.reconcile()
      expect(await hours()).toEqual([8 * day])
    } finally {
      await place.drop()
    }
  })

  describe('of groups', () => {
    it('tell the cause, first and last death, a sample and how many by state', async () => {
      const { work, letters } = await acts.queues()
      const error = (number: number) => ({
        reason: 'http_503',
        errorClass: 'Refused',
        message: `HTTP 503: order ${number} of "shop" refused`,
        stack: 'Error\n  at pay (pay.ts:1:1)',
      })
      const ids: string[] = []
      for (const number of [1, 22, 333]) {
        ids.push(...(await acts.bury(work, newItems(1), error(number), noon + number)))
      }
      await acts.discard([ids[0] ?? ''])
      const [group, ...others] = await groups()
      expect(others).toEqual([])
      const [letter] = await given.storage.getLetters(ids)
      const cause = causeOf(letter?.failure ?? null, { name: work })
      expect(group).toEqual({
        id: letter?.groupId,
        queue: letters,
        ...cause,
        firstSeenAt: noon + 1,
        lastSeenAt: noon + 333,
        sampleId: ids[2],
        count: 3,
        states: { waiting: 2, discarded: 1 },
      })
      expect(cause).toMatchObject({ slug: 'http_503', title: 'HTTP <n>: order <n> of <text> refused' })
    })

    it('are others in another queue, and where class, reason or origin differ', async () => {
      const [one, two] = [await given.queue(), await given.queue()]
      const failures = [aFailure(), aFailure({ errorClass: 'Other' }), aFailure({ reason: 'other' })]
      const letters = failures.map((failure) => aLetter({ failure }))
      await acts.capture(one, [...letters, aLetter({ origin: anOrigin({ name: 'orders' }) })])
      await acts.capture(two, letters)
      expect(await groups()).toHaveLength(7)
      expect((await groups({ queues: [two] })).map(({ queue }) => queue)).toEqual([two, two, two])
    })

    it('come with the most letters first, then by id, page by page', async () => {
      const letters = await given.queue()
      const sizes = [2, 5, 1, 2, 3, 1]
      for (const [index, size] of sizes.entries()) {
        const failure = aFailure({ errorClass: `Class${'abcdef'[index]}` })
        await acts.capture(
          letters,
          Array.from({ length: size }, () => aLetter({ failure })),
        )
      }
      const all = await groups()
      expect(all.map(({ count }) => count)).toEqual([5, 3, 2, 2, 1, 1])
      for (const [index, group] of all.entries()) {
        const next = all[index + 1]
        if (next?.count === group.count) expect(next.id).toBeGreaterThan(group.id)
      }
      const paged: GroupFacts[] = []
      for (;;) {
        const last = paged.at(-1)
        const after = last === undefined ? {} : { after: { count: last.count, id: last.id } }
        const page = await given.storage.listGroups({ filter: {}, isEmptyToo: false, countMax: 2, ...after })
        if (page.length === 0) break
        paged.push(...page)
      }
      expect(paged).toEqual(all)
    })

    it('count what the filter asks for; empty ones are listed on demand', async () => {
      const letters = await given.queue()
      const [a = ''] = await acts.capture(letters, [
        aLetter({ failure: aFailure({ errorClass: 'A' }) }),
        aLetter({ failure: aFailure({ errorClass: 'A' }) }),
        aLetter({ failure: aFailure({ errorClass: 'B' }) }),
      ])
      await acts.discard([a])
      const told = (all: readonly GroupFacts[]) =>
        all.map(({ errorClass, count: found }) => [errorClass, found])
      expect(told(await groups({ states: ['discarded'] }))).toEqual([['A', 1]])
      expect(told(await groups({ states: ['discarded'] }, true))).toEqual([
        ['A', 1],
        ['B', 0],
      ])
      expect(told(await groups({ errorClasses: ['B'] }))).toEqual([['B', 1]])
      expect(told(await groups({ groupIds: [] }, true))).toEqual([])
      await given.run({
        op: 'clear',
        queue: letters,
        isWaiting: true,
        isScheduled: true,
        isLeased: true,
        countMax: 9,
      })
      expect(told(await groups())).toEqual([['A', 1]])
      const [, empty] = await groups({}, true)
      expect(empty).toMatchObject({ errorClass: 'B', count: 0, lastSeenAt: noon, sampleId: null, states: {} })
    })

    it('keep a sample that is there: when the newest goes, the one before it', async () => {
      const { work, letters } = await acts.queues()
      const [first = ''] = await acts.bury(work, newItems(1), undefined, noon)
      const [second = ''] = await acts.bury(work, newItems(1), undefined, noon + 1)
      expect(await groups()).toMatchObject([{ sampleId: second, lastSeenAt: noon + 1 }])
      await given.run({ op: 'delete', queue: letters, partition: 0, ids: [second] })
      expect(await groups()).toMatchObject([{ sampleId: first, lastSeenAt: noon + 1, firstSeenAt: noon }])
    })

    it('are seen when a letter dies of their cause, also after a redrive, and keep when that was', async () => {
      const { work } = await acts.queues()
      const [letterId = ''] = await acts.bury(work, newItems(1), { message: 'old cause' }, noon)
      const fail = async (message: string, at: number) =>
        acts.declareDead(await acts.take(await acts.send(letterId, at), at), { message }, at)
      const seen = async () =>
        Promise.all(
          (await groups({}, true))
            .toSorted((a, b) => a.id - b.id)
            .map(async ({ id, title, count: found, firstSeenAt, lastSeenAt }) => ({
              title,
              found,
              seen: [firstSeenAt - noon, lastSeenAt - noon],
              hours: (await given.storage.groupArrivals([id], noon)).map((each) => [
                each.hour - noon,
                each.count,
              ]),
            })),
        )
      const old = { title: 'old cause', found: 0, seen: [0, 0], hours: [[0, 1]] }
      await fail('new cause', noon + 3 * day + minute)
      expect(await seen()).toEqual([
        old,
        {
          title: 'new cause',
          found: 1,
          seen: [3 * day + minute, 3 * day + minute],
          hours: [[3 * day, 1]],
        },
      ])
      await fail('new cause', noon + 3 * day + 2 * minute)
      const now = {
        title: 'new cause',
        found: 1,
        seen: [3 * day + minute, 3 * day + 2 * minute],
        hours: [[3 * day, 2]],
      }
      expect(await seen()).toEqual([old, now])
      await fail('old cause', noon + 5 * day)
      const hours = [
        [0, 1],
        [5 * day, 1],
      ]
      expect(await seen()).toEqual([
        { ...old, found: 1, seen: [0, 5 * day], hours },
        { ...now, found: 0 },
      ])
    })

    it('say how many arrived per hour', async () => {
      const { work, letters } = await acts.queues()
      const list = async () => listAll(given.storage, letters)
      const bury = async (number: number, at: number) => acts.bury(work, newItems(number), undefined, at)
      await bury(2, noon)
      await bury(1, noon + hour - 1)
      await bury(4, noon + hour)
      await bury(1, noon + 5 * hour + minute)
      const [{ id = -1 } = {}] = await groups()
      const arrived = [
        { groupId: id, hour: noon, count: 3 },
        { groupId: id, hour: noon + hour, count: 4 },
        { groupId: id, hour: noon + 5 * hour, count: 1 },
      ]
      const arrivals = async (since: number) =>
        (await given.storage.groupArrivals([id], since)).toSorted((a, b) => a.hour - b.hour)
      expect(await arrivals(noon)).toEqual(arrived)
      expect(await arrivals(noon + hour)).toEqual(arrived.slice(1))
      // Told late, it counts where it died.
      const { failure, origin } = (await list())[0] as Item
      const late = aLetter({ failure, origin, diedAt: noon + hour + 1 })
      await acts.capture(letters, [late], noon + 9 * hour)
      expect((await arrivals(noon))[1]).toEqual({ groupId: id, hour: noon + hour, count: 5 })
      expect(await given.storage.groupArrivals([], noon)).toEqual([])
      expect(await given.storage.groupArrivals([id + 1_000], noon)).toEqual([])
    })

    it(`are kept apart up to ${causesKept} per queue; the causes beyond share one group per origin, reason and class`, {
      timeout: 120_000,
    }, async () => {
      const [letters, roomy] = [await given.queue(), await given.queue()]
      await fill(letters, 0, causesKept, (number) => ({ errorClass: `Class${number}` }))
      const failures = [
        { errorClass: 'Same', message: 'one: x' },
        { errorClass: 'Same', message: 'two: x' },
        { errorClass: 'Same', message: 'two: x', reason: 'other' },
        { errorClass: 'Class17', message: 'three: x' },
        { errorClass: 'Class17' },
      ]
      const ids = await acts.capture(
        letters,
        failures.map((changes) => aLetter({ failure: aFailure(changes) })),
      )
      const [a, b, c, d, known] = await given.storage.getLetters(ids)
      expect(a?.groupId).toBe(b?.groupId)
      expect(new Set([a, c, d, known].map((letter) => letter?.groupId)).size).toBe(4)
      const others = await groups({ queues: [letters], slugs: ['other'] })
      const told = others.map(({ errorClass, reason, count: found }) => `${errorClass}/${reason}/${found}`)
      expect(told.toSorted()).toEqual(['Class17/http_503/1', 'Same/http_503/2', 'Same/other/1'])
      const total = causesKept + failures.length
      for (const [filter, matching] of [
        [{ errorClasses: ['Same'] }, 3],
        [{ errorClasses: ['Class17'] }, 3],
        [{ errorClasses: ['Same'], reasons: ['http_503'] }, 2],
        [{ slugs: ['other'] }, 4],
        [{ slugs: ['one'] }, 0],
        [{ origins: ['payments'] }, total],
      ] as const) {
        const asked: CountedFilter = { queues: [letters], ...filter }
        const sum = matching > 0 ? [{ count: matching }] : []
        expect(await count(asked), JSON.stringify(filter)).toEqual(sum)
        expect(await listed(asked), JSON.stringify(filter)).toBe(matching)
      }
      const slugs = await given.storage.groupSlugs([a?.groupId ?? -1, known?.groupId ?? -1, 1_000_000_000])
      expect(new Map(slugs.map(({ id, slug }) => [id, slug]))).toEqual(
        new Map([
          [a?.groupId, 'other'],
          [known?.groupId, 'card'],
        ]),
      )
      // Another queue has its own bound.
      await acts.capture(roomy, [aLetter({ failure: aFailure({ errorClass: 'Same' }) })])
      expect(await groups({ queues: [roomy] })).toMatchObject([
        { errorClass: 'Same', title: 'card <n> was refused' },
      ])
    })

    it(`are ${groupsKept} per queue; what comes after them is told apart by origin and reason only`, {
      timeout: 240_000,
    }, async () => {
      const letters = await given.queue()
      await fill(letters, 0, groupsKept, (number) => ({ errorClass: `Class${number}` }))
      const ids = await acts.capture(letters, [
        aLetter({ failure: aFailure({ errorClass: 'New' }) }),
        aLetter({ failure: aFailure({ errorClass: 'Newer' }) }),
        aLetter({ failure: aFailure({ errorClass: `Class${groupsKept - 1}`, message: 'else' }) }),
      ])
      const [a, b, known] = await given.storage.getLetters(ids)
      expect(a?.groupId).toBe(b?.groupId)
      expect(await groups({ groupIds: [a?.groupId ?? -1] })).toMatchObject([
        { errorClass: anyClass, slug: 'other', count: 2 },
      ])
      expect(await groups({ groupIds: [known?.groupId ?? -1] })).toMatchObject([
        { errorClass: `Class${groupsKept - 1}`, slug: 'other', count: 2 },
      ])
      // Their own class is what they are found by, though only they tell it.
      expect(await count({ errorClasses: ['New'] })).toEqual([])
      expect(await count({ errorClasses: [anyClass] })).toEqual([{ count: 2 }])
      const states = ['waiting'] as const
      for (const [errorClasses, matching] of [
        [['New'], 1],
        [['New', 'Newer'], 2],
        [['Newer', `Class${groupsKept - 1}`], 3],
        [['None'], 0],
        [[], 0],
      ] as const) {
        const few = {
          order: 'diedAt',
          isDescending: false,
          countMax: 5,
          lookMax: 1,
          hasBytes: false,
        } as const
        const { looked } = await given.storage.listLetters({ filter: { errorClasses }, ...few })
        expect(looked).toBeLessThanOrEqual(1)
        expect(await listed({ errorClasses })).toBe(matching)
        expect(await listed({ errorClasses, states })).toBe(matching)
        expect(await listed({ errorClasses, redrives: { max: 0 } }, 'updatedAt')).toBe(matching)
      }
    })

    /** A page may end early for lack of time. */
    const listed = async (filter: CountedFilter, order: LetterOrder = 'diedAt'): Promise<number> => {
      const page = { filter, order, isDescending: false, countMax: 1_000, lookMax: 10_000 } as const
      let found = 0
      for (let after: LetterCursor | null | undefined; after !== null; ) {
        const query = { ...page, hasBytes: false, ...(after && { after }) }
        const { letters, next }: LettersPage = await given.storage.listLetters(query)
        found += letters.length
        after = next
      }
      return found
    }
    const fill = async (
      queue: string,
      from: number,
      until: number,
      failure: (number: number) => Parameters<typeof aFailure>[0],
    ) => {
      for (let at = from; at < until; at += 1_000) {
        const batch = Array.from({ length: 1_000 }, (_, index) =>
          aLetter({ failure: aFailure(failure(at + index)) }),
        )
        await acts.capture(queue, batch)
      }
    }
  })
})

describeDurableStores('a count of letters that is wrong', (given) => {
  const acts = letterActs(given)

  it('is found, named and set right', async () => {
    const { work, letters } = await acts.queues()
    await acts.bury(work, newItems(4))
    const minutes = given.storage.kind === 'sqlite' ? 'open_minutes' : 'open_letters'
    await executeRaw(given.place.target, (schema) => `update ${schema}letter_counts set n = n + 2`)
    await executeRaw(given.place.target, (schema) => `update ${schema}${minutes} set n = n + 3`)
    const told = await given.storage.verify()
    for (const count of ['letters', 'open-minutes'] as const) {
      const found = told.find((difference) => difference.count === count)
      expect(found).toMatchObject({ queue: letters, partition: -1, actual: 4 })
      expect(found?.counted).toBeGreaterThan(4)
    }
    expect(await given.storage.reconcile()).toEqual(told)
    expect(await given.storage.verify()).toEqual([])
    expect(await given.storage.countLetters({ filter: {}, by: [] })).toEqual([{ count: 4 }])
    expect(await given.storage.countOpenSince(noon)).toBe(4)
  })
})

async function expectRecounted(given: Given, all: readonly Item[], query: LetterCountsQuery): Promise<void> {
  const sums = new Map<string, LetterCount>()
  for (const letter of all.filter((each) => isMeant(each, query.filter))) {
    const cause = causeOf(letter.failure, letter.origin ?? { name: '' })
    const facts = {
      queue: letter.queue,
      state: gaugeOf(letter),
      group: letter.groupId ?? -1,
      origin: cause.origin,
      reason: cause.reason,
      slug: cause.slug,
      errorClass: cause.errorClass,
      redrives: Math.min(letter.redrives, 10),
    }
    const of = Object.fromEntries(query.by.map((each) => [each, facts[each]])) as Omit<LetterCount, 'count'>
    const key = JSON.stringify(of)
    sums.set(key, { ...of, count: (sums.get(key)?.count ?? 0) + 1 })
  }
  expect(inOrder(await given.storage.countLetters(query)), JSON.stringify(query)).toEqual(
    inOrder([...sums.values()]),
  )
}

function aFilter(chance: Chance, all: readonly Item[]): CountedFilter {
  const some = <T>(values: readonly T[]): T[] => values.filter(() => chance.below(2) === 0)
  const maybe = <T>(name: string, value: T): object => (chance.below(4) === 0 ? { [name]: value } : {})
  const min = chance.below(3)
  return {
    ...maybe('queues', some([...new Set(all.map(({ queue }) => queue))])),
    ...maybe('states', some(['waiting', 'scheduled', 'leased', 'done', 'dead', 'discarded'])),
    ...maybe('groupIds', some([...new Set(all.map(({ groupId }) => groupId))])),
    ...maybe('origins', some([...new Set(all.map(({ origin }) => origin?.name))])),
    ...maybe('reasons', some(['http_503', 'http_410', 'retried', 'attempts', 'expired', 'outcome_unknown'])),
    ...maybe('slugs', some(['http_503', 'gone', 'unknown', 'lease', 'what'])),
    ...maybe('errorClasses', some(['', 'A', 'B'])),
    ...maybe('redrives', chance.below(2) === 0 ? { min } : { min, max: min + chance.below(3) }),
  }
}

/** Many letters that live through anything, two queues and their dead queue, which are given. */
async function anyLife(given: Given, chance: Chance): Promise<string[]> {
  const acts = letterActs(given)
  const redrive = {
    mode: 'auto',
    redrivesMax: 2,
    backoff: { kind: 'fixed', delayUs: minute, jitter: 0.2 },
  } as const
  const letters = await given.queue({ partitions: 2, attemptsMax: 1, leaseUs: minute, redrive })
  const queues = [
    letters,
    await given.queue({ deadQueue: letters, attemptsMax: 1, leaseUs: minute, expireUs: 5 * minute }),
    await given.queue({ deadQueue: letters, partitions: 2, keepDoneUs: minute, leaseUs: second }),
  ]
  let now = noon
  for (let step = 0; step < 60; step++) {
    now += chance.below(minute / 2)
    const queue = chance.pick(queues)
    const error = {
      errorClass: chance.pick(['', 'A', 'B']),
      message: chance.pick(['HTTP 503: x', 'gone', '']),
    }
    const all = (
      await given.storage.listLetters({
        filter: {},
        order: 'diedAt',
        isDescending: chance.below(2) === 0,
        countMax: 50,
        lookMax: 1_000,
        hasBytes: false,
      })
    ).letters.map(({ rootId }) => rootId)
    const some = all.filter(() => chance.below(4) === 0)
    switch (chance.below(10)) {
      case 0:
        if (queue !== letters) await acts.bury(queue, newItems(1 + chance.below(4)), error, now)
        break
      case 1: {
        const failure = aFailure({ reason: chance.pick(['http_503', 'http_410']), ...error })
        await acts.capture(queue, [aLetter({ failure, redrives: chance.pick([0, 0, 9, 10, 11]) })], now)
        break
      }
      case 2:
      case 3: {
        const target = chance.below(2) === 0 ? (queues[1] ?? '') : null
        const sent = some.map((letterId) => ({ letterId, queue: target }))
        await acts.redrive([], { letters: sent, isCapped: false, isDeadAllowed: true, now })
        break
      }
      case 4:
        await acts.discard(some.slice(0, 2), now)
        break
      case 5:
        await given.run({ op: 'advance', now, countMax: 10 })
        break
      case 6: {
        const archive = { op: 'archive', queue: letters, endedBefore: now, countMax: 2, now } as const
        const archived = await given.storage.listArchivedLetters({ countMax: 5 })
        const letterIds = archived.map(({ item }) => item.rootId)
        await given.run(chance.below(2) === 0 ? archive : { op: 'restore', letterIds, now })
        break
      }
      case 7: {
        const at = { queue, partition: 0 }
        if (chance.below(3) === 0) {
          await given.run({
            op: 'clear',
            ...at,
            isWaiting: true,
            isScheduled: true,
            isLeased: true,
            countMax: 2,
          })
        }
        break
      }
      default: {
        const at = { queue, partition: chance.below(queue === queues[1] ? 1 : 2), now }
        const held = await given.run({ op: 'lease', ...at, holders: ['w', 'w', 'w'] })
        const [one, two] = held.map(({ id }) => id)
        if (one !== undefined) await given.run({ op: 'complete', ...at, ids: [one] })
        if (two !== undefined) {
          const isDead = chance.below(2) === 0
          await given.run({ op: 'retry', ...at, items: [{ id: two, availableAt: null, isDead, error }] })
        }
      }
    }
  }
  return queues
}
