import { describe, expect, it } from 'vitest'
import { anItem, noon } from '../../test/make.ts'
import type { LetterCountsQuery, LetterFilter, LettersQuery } from '../storage/contract/letters.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { countedPart, createSearch, isCounted } from './search.ts'
import { chooseExaminedMax } from './search-budget.ts'

describe('a letter', () => {
  it('a letter that is restored from the archive during the search is found', async () => {
    const letter = anItem()
    const looks: string[] = []
    const storage = {
      findLettersByUuid: async ([uuid]: readonly string[]) => [{ uuid, letterId: letter.rootId }],
      getLetters: async () => (looks.push('live') === 1 ? [] : [letter]),
      getArchivedLetters: async () => (looks.push('archive') === 0 ? [letter] : []),
      listEdits: async () => [],
      listAudit: async () => [],
    } as unknown as Storage
    const found = await createSearch(storage).find(letter.rootId)
    expect(found).toMatchObject({ item: letter, archivedAt: null })
    expect(looks).toEqual(['live', 'archive', 'live'])
  })
})

describe('a search', () => {
  /** A store of a million letters of which one in `every` matches; a look at 10,000 takes 100 ms. */
  const aStore = (every: number) => {
    let ms = 0
    const asked: LettersQuery[] = []
    const storage = {
      countLetters: async () => [{ count: 1_000_000 }],
      listLetters: async (query: LettersQuery) => {
        asked.push(query)
        const from = query.after?.value ?? 0
        const wanted = query.countMax * every
        const examinedCount = Math.min(query.examinedMax, 1_000_000 - from, wanted)
        ms += examinedCount / 100
        const letters = Array.from({ length: Math.floor(examinedCount / every) }, () => anItem())
        const at = from + examinedCount
        return { letters, examinedCount, next: at >= 1_000_000 ? null : { value: at, id: '' } }
      },
    } as unknown as Storage
    return { asked, search: createSearch(storage, () => ms), elapsed: () => ms }
  }
  const query = {
    filter: { text: 'x' },
    order: 'diedAt',
    isDescending: true,
    countMax: 20,
    bytes: 'none',
  } as const

  it('a search ends when the page is full', async () => {
    const { search, elapsed } = aStore(1_000)
    const page = await search.list(query)
    expect(page).toMatchObject({ examinedCount: 20_000, next: { value: 20_000 }, total: null })
    expect(page.letters).toHaveLength(20)
    expect(elapsed()).toBe(200)
  })

  it('a search ends when its time is used up, and returns where to continue', async () => {
    const { search, asked, elapsed } = aStore(Number.POSITIVE_INFINITY)
    const page = await search.list(query)
    expect(page.letters).toEqual([])
    expect(page.next).toEqual({ value: page.examinedCount, id: '' })
    expect(elapsed()).toBeGreaterThanOrEqual(1_000)
    expect(elapsed()).toBeLessThan(1_100)
    expect(asked[0]?.examinedMax).toBe(2_000)
    // No look holds a statement for long.
    expect(Math.max(...asked.map(({ examinedMax }) => examinedMax))).toBeLessThanOrEqual(20_000)
    expect(
      (await search.list({ ...query, after: page.next ?? { value: 0, id: '' }, msMax: 60_000 })).next,
    ).toBeNull()
  })

  it('a search examines no letters if the counts show that none match', async () => {
    const storage = { countLetters: async () => [] } as unknown as Storage
    const page = await createSearch(storage).list({ ...query, filter: { queues: ['empty'] } })
    expect(page).toEqual({ letters: [], examinedCount: 0, next: null, total: 0 })
  })

  it('a search examines more letters per statement while the statements stay short', () => {
    expect(chooseExaminedMax(2_000, 5, 900)).toBe(8_000)
    expect(chooseExaminedMax(8_000, 400, 900)).toBe(4_000)
    expect(chooseExaminedMax(8_000, 20, 10)).toBe(4_000)
    expect(chooseExaminedMax(100_000, 1, 900)).toBe(100_000)
  })
})

describe('a total', () => {
  it('a total is null if the filter names a class and some letters are counted without their class', async () => {
    const storage = {
      countLetters: async ({ filter }: LetterCountsQuery) =>
        filter.errorClasses?.includes('(others)') ? [{ count: 3 }] : [{ count: 7 }],
      listLetters: async () => ({ letters: [], examinedCount: 0, next: null }),
    } as unknown as Storage
    const search = createSearch(storage)
    const totalOf = async (filter: LetterFilter) =>
      (await search.list({ filter, order: 'diedAt', isDescending: true, countMax: 1, bytes: 'none' })).total
    expect(await totalOf({ errorClasses: ['A'] })).toBeNull()
    expect(await totalOf({ errorClasses: ['A'], slugs: ['some'] })).toBe(7)
    expect(await totalOf({ reasons: ['x'] })).toBe(7)
    expect(await search.areCountsExact({ errorClasses: ['A'] })).toBe(false)
    const none = createSearch({
      countLetters: async ({ filter }: LetterCountsQuery) =>
        filter.errorClasses?.includes('(others)') ? [{ count: 3 }] : [],
      listLetters: async () => ({ letters: [anItem()], examinedCount: 3, next: null }),
    } as unknown as Storage)
    const filter = { errorClasses: ['A'] }
    expect(
      (await none.list({ filter, order: 'diedAt', isDescending: true, countMax: 1, bytes: 'none' })).letters,
    ).toHaveLength(1)
    expect(await search.areCountsExact({ queues: ['q'] })).toBe(true)
  })

  it('counts by class are not exact if some letters are counted without their class', async () => {
    const storage = (others: number) =>
      ({
        countLetters: async ({ filter }: LetterCountsQuery) =>
          filter.errorClasses?.includes('(others)') ? [{ count: others }] : [{ count: 7 }],
      }) as unknown as Storage
    const search = createSearch(storage(3))
    expect(await search.areCountsExact({ queues: ['q'] }, ['errorClass', 'state'])).toBe(false)
    expect(await search.areCountsExact({ slugs: ['some'] }, ['errorClass'])).toBe(true)
    expect(await search.areCountsExact({ queues: ['q'] }, ['reason', 'state'])).toBe(true)
    expect(await createSearch(storage(0)).areCountsExact({}, ['errorClass'])).toBe(true)
  })

  it('a total is known if the counts alone can answer it', () => {
    expect(isCounted({})).toBe(true)
    expect(isCounted({ queues: ['a'], states: ['dead'], groupIds: [1], redrives: { min: 1, max: 9 } })).toBe(
      true,
    )
    expect(isCounted({ redrives: { min: 10 } })).toBe(true)
    expect(isCounted({ redrives: { min: 11 } })).toBe(false)
    expect(isCounted({ redrives: { max: 10 } })).toBe(false)
    expect(isCounted({ died: { from: noon } })).toBe(false)
    expect(isCounted({ text: 'x' })).toBe(false)
  })

  it('the total of the counted part of a filter is never lower than the number of matches', () => {
    expect(countedPart({ queues: ['a'], text: 'x', redrives: { min: 12, max: 20 } })).toEqual({
      queues: ['a'],
      redrives: { min: 10 },
    })
  })
})
