import { describe, expect, it } from 'vitest'
import { anItem, noon } from '../../test/make.ts'
import type { LetterCountsQuery, LetterFilter, ScanBounds } from '../storage/contract/letters.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { createSearch, isCounted, toCountedFilter } from './search.ts'

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
    const asked: ScanBounds[] = []
    const storage = {
      countLetters: async () => [{ count: 1_000_000 }],
      findRanges: async () => ({
        scan: async (bounds: ScanBounds) => {
          asked.push(bounds)
          const from = bounds.after?.value ?? 0
          const wanted = bounds.countMax * every - (from % every)
          const examinedCount = Math.min(bounds.examinedMax, 1_000_000 - from, wanted)
          ms += examinedCount / 100
          const at = from + examinedCount
          const count = Math.floor(at / every) - Math.floor(from / every)
          const found = Array.from({ length: count }, () => ({ item: anItem(), at }))
          return { found, examinedCount, next: at >= 1_000_000 ? null : { value: at, id: '' } }
        },
      }),
    } as unknown as Storage
    return { asked, search: createSearch(storage, () => ms), elapsed: () => ms }
  }
  const query = {
    filter: { text: 'x' },
    order: 'deadLetteredAt',
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
    expect(asked[0]?.examinedMax).toBe(1_000)
    // No step is longer than 100 ms.
    expect(Math.max(...asked.map(({ examinedMax }) => examinedMax))).toBeLessThanOrEqual(10_000)
    expect(
      (await search.list({ ...query, after: page.next ?? { value: 0, id: '' }, msMax: 60_000 })).next,
    ).toBeNull()
  })

  it('a search examines no letters if the counts show that none match', async () => {
    const storage = { countLetters: async () => [] } as unknown as Storage
    const page = await createSearch(storage).list({ ...query, filter: { queues: ['empty'] } })
    expect(page).toEqual({ letters: [], examinedCount: 0, next: null, total: 0 })
  })
})

describe('a total', () => {
  it('a total is null if the filter names a class and some letters are counted without their class', async () => {
    const storage = {
      countLetters: async ({ filter }: LetterCountsQuery) =>
        filter.errorClasses?.includes('(others)') ? [{ count: 3 }] : [{ count: 7 }],
      findRanges: async () => ({ scan: async () => ({ found: [], examinedCount: 0, next: null }) }),
    } as unknown as Storage
    const search = createSearch(storage)
    const totalOf = async (filter: LetterFilter) =>
      (await search.list({ filter, order: 'deadLetteredAt', isDescending: true, countMax: 1, bytes: 'none' }))
        .total
    expect(await totalOf({ errorClasses: ['A'] })).toBeNull()
    expect(await totalOf({ errorClasses: ['A'], slugs: ['some'] })).toBe(7)
    expect(await totalOf({ errorCodes: ['x'] })).toBe(7)
    expect(await search.areCountsExact({ errorClasses: ['A'] })).toBe(false)
    const none = createSearch({
      countLetters: async ({ filter }: LetterCountsQuery) =>
        filter.errorClasses?.includes('(others)') ? [{ count: 3 }] : [],
      findRanges: async () => ({
        scan: async () => ({ found: [{ item: anItem(), at: noon }], examinedCount: 3, next: null }),
      }),
    } as unknown as Storage)
    const filter = { errorClasses: ['A'] }
    expect(
      (await none.list({ filter, order: 'deadLetteredAt', isDescending: true, countMax: 1, bytes: 'none' }))
        .letters,
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
    expect(await search.areCountsExact({ queues: ['q'] }, ['errorCode', 'state'])).toBe(true)
    expect(await createSearch(storage(0)).areCountsExact({}, ['errorClass'])).toBe(true)
  })

  it('a total is known if the counts alone can answer it', () => {
    expect(isCounted({})).toBe(true)
    expect(
      isCounted({ queues: ['a'], states: ['dead'], groupIds: [1], retryCount: { min: 1, max: 9 } }),
    ).toBe(true)
    expect(isCounted({ retryCount: { min: 10 } })).toBe(true)
    expect(isCounted({ retryCount: { min: 11 } })).toBe(false)
    expect(isCounted({ retryCount: { max: 10 } })).toBe(false)
    expect(isCounted({ died: { from: noon } })).toBe(false)
    expect(isCounted({ text: 'x' })).toBe(false)
  })

  it('the total of the counted part of a filter is never lower than the number of matches', () => {
    expect(toCountedFilter({ queues: ['a'], text: 'x', retryCount: { min: 12, max: 20 } })).toEqual({
      queues: ['a'],
      retryCount: { min: 10 },
    })
  })
})
