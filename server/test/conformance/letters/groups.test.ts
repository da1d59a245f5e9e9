/** Groups of letters: one for each cause, with counts, first and last death, and a sample. */

import { expect, it } from 'vitest'
import { anyClass, toCause } from '../../../src/core/dead-letters/cause.ts'
import { openLifecycle } from '../../../src/core/dead-letters/group-lifecycle.ts'
import type { Item } from '../../../src/core/items/item.ts'
import type {
  CountedBy,
  CountedFilter,
  GroupFacts,
  LetterCursor,
  LetterOrder,
} from '../../../src/storage/contract/letters.ts'
import { isQuick } from '../../is-quick.ts'
import { aFailure, anOrigin, day, hour, minute, newItems, noon } from '../../make.ts'
import { sortCounts } from '../support/expect-consistent-letters.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { type LettersPage, listLetters } from '../support/list-letters.ts'
import { listAll } from '../support/store-reads.ts'
import { describeStores } from '../support/test-stores.ts'

const causesKept = 5_000
const groupsKept = 10_000

describeStores('groups of letters', (given) => {
  const actions = createLetterActions(given)
  const count = async (filter: CountedFilter, by: readonly CountedBy[] = []) =>
    sortCounts(await given.storage.countLetters({ filter, by }))
  const groups = async (filter: CountedFilter = {}, isEmptyToo = false) =>
    given.storage.listGroups({ filter, isEmptyToo, countMax: 100 })

  it('a group has its cause, first and last death, a sample and counts by state', async () => {
    const { work, letters } = await actions.createQueues()
    const error = (number: number) => ({
      errorCode: 'http_503',
      errorClass: 'Refused',
      message: `HTTP 503: order ${number} of "shop" refused`,
      stack: 'Error\n  at pay (pay.ts:1:1)',
    })
    const ids: string[] = []
    for (const number of [1, 22, 333]) {
      ids.push(...(await actions.produceDead(work, newItems(1), error(number), noon + number)))
    }
    await actions.discard([ids[0] ?? ''])
    const [group, ...others] = await groups()
    expect(others).toEqual([])
    const [letter] = await given.storage.getLetters(ids)
    const { fingerprint, causeKey, origin, errorCode, slug, errorClass, title } = toCause(
      letter?.failure ?? null,
      {
        name: work,
      },
    )
    expect(group).toEqual({
      id: letter?.groupId,
      lifecycle: openLifecycle,
      queue: letters,
      ...{ fingerprint, causeKey, origin, errorCode, slug, errorClass, title },
      isTitlePinned: false,
      mergedIds: [],
      firstSeenAt: noon + 1,
      lastSeenAt: noon + 333,
      sampleId: ids[2],
      count: 3,
      states: { waiting: 2, discarded: 1 },
    })
    expect(group).toMatchObject({ slug: 'http_503', title: 'HTTP 503: order <n> of "<text>" refused' })
  })

  it('groups differ by queue, class, reason and origin', async () => {
    const [one, two] = [await given.queue(), await given.queue()]
    const failures = [aFailure(), aFailure({ errorClass: 'Other' }), aFailure({ errorCode: 'other' })]
    const letters = failures.map((failure) => aLetter({ failure }))
    await actions.capture(one, [...letters, aLetter({ origin: anOrigin({ name: 'orders' }) })])
    await actions.capture(two, letters)
    expect(await groups()).toHaveLength(7)
    expect((await groups({ queues: [two] })).map(({ queue }) => queue)).toEqual([two, two, two])
  })

  it('leases that ended form one group, whichever worker held them', async () => {
    const { work } = await actions.createQueues({ leaseTimeoutUs: minute, attemptsMax: 1 })
    await given.run({ op: 'produce', queue: work, partition: 0, items: newItems(3), now: noon })
    const holders = ['shop-worker-6d5f7c9b8-xkqwz', 'alice', 'bob']
    await given.run({ op: 'lease', queue: work, partition: 0, holders, now: noon })
    await given.run({ op: 'advance', now: noon + minute + 1, countMax: 10 })
    const title = 'lease ended: the item was not completed, extended or given back in time'
    const found = await groups()
    expect(found).toMatchObject([{ count: 3, errorCode: 'attempts', slug: 'lease_ended', title }])
    const letters = await listAll(given.storage, found[0]?.queue ?? '')
    expect(letters.map(({ failure }) => failure?.worker).toSorted()).toEqual(holders.toSorted())
  })

  it('groups are listed by number of letters, then by id, page by page', async () => {
    const letters = await given.queue()
    const sizes = [2, 5, 1, 2, 3, 1]
    for (const [index, size] of sizes.entries()) {
      const failure = aFailure({ errorClass: `Class${'abcdef'[index]}` })
      await actions.capture(
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

  it('groups count matching letters; empty groups are listed on request', async () => {
    const letters = await given.queue()
    const [a = ''] = await actions.capture(letters, [
      aLetter({ failure: aFailure({ errorClass: 'A' }) }),
      aLetter({ failure: aFailure({ errorClass: 'A' }) }),
      aLetter({ failure: aFailure({ errorClass: 'B' }) }),
    ])
    await actions.discard([a])
    const summarize = (all: readonly GroupFacts[]) =>
      all.map(({ errorClass, count: found }) => [errorClass, found])
    expect(summarize(await groups({ states: ['discarded'] }))).toEqual([['A', 1]])
    expect(summarize(await groups({ states: ['discarded'] }, true))).toEqual([
      ['A', 1],
      ['B', 0],
    ])
    expect(summarize(await groups({ errorClasses: ['B'] }))).toEqual([['B', 1]])
    expect(summarize(await groups({ groupIds: [] }, true))).toEqual([])
    await given.run({
      op: 'clear',
      queue: letters,
      isWaiting: true,
      isScheduled: true,
      isLeased: true,
      countMax: 9,
      now: noon + 5,
    })
    const ended = { endedBefore: noon + 6, countMax: 9, now: noon + 6 }
    await given.run({ op: 'archive', queue: letters, states: ['discarded'], ...ended })
    expect(summarize(await groups())).toEqual([])
    const empty = (await groups({}, true)).find(({ errorClass }) => errorClass === 'B')
    expect(empty).toMatchObject({ errorClass: 'B', count: 0, lastSeenAt: noon, sampleId: null, states: {} })
  })

  it('a group has an existing sample when its newest letter leaves', async () => {
    const { work, letters } = await actions.createQueues()
    const [first = ''] = await actions.produceDead(work, newItems(1), undefined, noon)
    const [second = ''] = await actions.produceDead(work, newItems(1), undefined, noon + 1)
    expect(await groups()).toMatchObject([{ sampleId: second, lastSeenAt: noon + 1 }])
    await actions.discard([second])
    const ended = { endedBefore: noon + hour, countMax: 9, now: noon + hour }
    await given.run({ op: 'archive', queue: letters, states: ['discarded'], ...ended })
    expect(await groups()).toMatchObject([{ sampleId: first, lastSeenAt: noon + 1, firstSeenAt: noon }])
  })

  it('a group records its last death, also after a redrive', async () => {
    const { work } = await actions.createQueues()
    const [letterId = ''] = await actions.produceDead(work, newItems(1), { message: 'old cause' }, noon)
    const fail = async (message: string, at: number) =>
      actions.declareDead(await actions.leaseOne(await actions.redriveOne(letterId, at), at), { message }, at)
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

  it('a group was first seen at its earliest death, in any order of arrival', async () => {
    const letters = await given.queue()
    const others = { failure: aFailure({ errorClass: 'Other' }) }
    const seen = async () => {
      const [group] = await groups({ errorClasses: [aFailure().errorClass] })
      return [group?.firstSeenAt, group?.lastSeenAt].map((at) => at && at - noon)
    }
    const died = (at: number, changes: object = {}) => aLetter({ deadLetteredAt: noon + at, ...changes })
    await actions.capture(letters, [died(-hour), died(-10 * hour), died(-9 * hour), died(-day, others)])
    expect(await seen()).toEqual([-10 * hour, -hour])
    await actions.capture(letters, [died(-2 * hour), died(-20 * hour, { sourceId: 'a' }), died(-19 * hour)])
    expect(await seen()).toEqual([-20 * hour, -hour])
    await actions.capture(letters, [died(-5 * hour)])
    expect(await seen()).toEqual([-20 * hour, -hour])
    // The letter exists already, so its time of death does not change.
    await actions.capture(letters, [died(-30 * hour, { sourceId: 'a' }), died(-20 * hour - 1)])
    expect(await seen()).toEqual([-20 * hour - 1, -hour])
    // A rejected write has no effect, either.
    const earlier = {
      op: 'import',
      queue: letters,
      partition: 0,
      now: noon,
      items: [died(-40 * hour)],
    } as const
    const refused = { ...earlier, queue: 'nowhere' } as const
    await expect(given.storage.write([earlier, refused])).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' })
    expect(await seen()).toEqual([-20 * hour - 1, -hour])
    await actions.capture(letters, [died(-21 * hour)])
    expect(await seen()).toEqual([-21 * hour, -hour])
    expect(await groups({ errorClasses: ['Other'] })).toMatchObject([{ firstSeenAt: noon - day }])
  })

  it('a group counts arrivals per hour', async () => {
    const { work, letters } = await actions.createQueues()
    const list = async () => listAll(given.storage, letters)
    const bury = async (number: number, at: number) =>
      actions.produceDead(work, newItems(number), undefined, at)
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
    // A late arrival counts in the hour of its death.
    const { failure, origin } = (await list())[0] as Item
    const late = aLetter({ failure, origin, deadLetteredAt: noon + hour + 1 })
    await actions.capture(letters, [late], noon + 9 * hour)
    expect((await arrivals(noon))[1]).toEqual({ groupId: id, hour: noon + hour, count: 5 })
    expect(await given.storage.groupArrivals([], noon)).toEqual([])
    expect(await given.storage.groupArrivals([id + 1_000], noon)).toEqual([])
  })

  it(`a queue has up to ${causesKept} groups by cause; further causes share one group per origin, reason and class`, {
    timeout: 120_000,
    skip: isQuick,
  }, async () => {
    const [letters, roomy] = [await given.queue(), await given.queue()]
    await fill(letters, 0, causesKept, (number) => ({ errorClass: `Class${number}` }))
    const failures = [
      { errorClass: 'Same', message: 'one: x' },
      { errorClass: 'Same', message: 'two: x' },
      { errorClass: 'Same', message: 'two: x', errorCode: 'other' },
      { errorClass: 'Class17', message: 'three: x' },
      { errorClass: 'Class17' },
    ]
    const ids = await actions.capture(
      letters,
      failures.map((changes) => aLetter({ failure: aFailure(changes) })),
    )
    const [a, b, c, d, known] = await given.storage.getLetters(ids)
    expect(a?.groupId).toBe(b?.groupId)
    expect(new Set([a, c, d, known].map((letter) => letter?.groupId)).size).toBe(4)
    const others = await groups({ queues: [letters], slugs: ['other'] })
    const summaries = others.map(
      ({ errorClass, errorCode, count: found }) => `${errorClass}/${errorCode}/${found}`,
    )
    expect(summaries.toSorted()).toEqual(['Class17/http_503/1', 'Same/http_503/2', 'Same/other/1'])
    const total = causesKept + failures.length
    for (const [filter, matching] of [
      [{ errorClasses: ['Same'] }, 3],
      [{ errorClasses: ['Class17'] }, 3],
      [{ errorClasses: ['Same'], errorCodes: ['http_503'] }, 2],
      [{ slugs: ['other'] }, 4],
      [{ slugs: ['one'] }, 0],
      [{ origins: ['payments'] }, total],
    ] as const) {
      const asked: CountedFilter = { queues: [letters], ...filter }
      const sum = matching > 0 ? [{ count: matching }] : []
      expect(await count(asked), JSON.stringify(filter)).toEqual(sum)
      expect(await listed(asked), JSON.stringify(filter)).toBe(matching)
    }
    const slugs = await given.storage.readGroupLabels([a?.groupId ?? -1, known?.groupId ?? -1, 1_000_000_000])
    expect(new Map(slugs.map(({ id, slug }) => [id, slug]))).toEqual(
      new Map([
        [a?.groupId, 'other'],
        [known?.groupId, 'card'],
      ]),
    )
    // Another queue has its own bound.
    await actions.capture(roomy, [aLetter({ failure: aFailure({ errorClass: 'Same' }) })])
    expect(await groups({ queues: [roomy] })).toMatchObject([
      { errorClass: 'Same', title: 'card <n> was refused' },
    ])
  })

  it(`above ${groupsKept} groups per queue, new letters are grouped by origin and reason only`, {
    timeout: 240_000,
    skip: isQuick,
  }, async () => {
    const letters = await given.queue()
    await fill(letters, 0, groupsKept, (number) => ({ errorClass: `Class${number}` }))
    const ids = await actions.capture(letters, [
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
    // Letters are found by their own class, although their group does not have it.
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
        order: 'deadLetteredAt',
        isDescending: false,
        countMax: 5,
        examinedMax: 1,
        bytes: 'none',
      } as const
      const { examinedCount } = await listLetters(given.storage, { filter: { errorClasses }, ...few })
      expect(examinedCount).toBeLessThanOrEqual(1)
      expect(await listed({ errorClasses })).toBe(matching)
      expect(await listed({ errorClasses, states })).toBe(matching)
      expect(await listed({ errorClasses, retryCount: { max: 0 } }, 'updatedAt')).toBe(matching)
    }
  })

  /** A page may end early because of its time limit. */
  const listed = async (filter: CountedFilter, order: LetterOrder = 'deadLetteredAt'): Promise<number> => {
    const page = { filter, order, isDescending: false, countMax: 1_000, examinedMax: 10_000 } as const
    let found = 0
    for (let after: LetterCursor | null | undefined; after !== null; ) {
      const query = { ...page, bytes: 'none', ...(after && { after }) } as const
      const { letters, next }: LettersPage = await listLetters(given.storage, query)
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
      await actions.capture(queue, batch)
    }
  }
})
