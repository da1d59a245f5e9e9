import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { Item } from '../../core/items/item.ts'
import { KnownError } from '../../errors.ts'
import type { LetterSearch, Letters } from '../../letters/letters.ts'
import { readNumberedPage } from './numbered-pages.ts'

/**
 * Creates a list of numbers in place of letters. `isCounted: false` stands for a search: every `matchEvery`th
 * letter matches, and a step takes `stepMs` and reads up to `examinedMax` letters.
 */
function createList(numbers: number[], options: Partial<typeof plain> = {}) {
  const { isCounted, matchEvery, examinedMax, stepMs } = { ...plain, ...options }
  const calls: LetterSearch[] = []
  const list = async (search: LetterSearch) => {
    calls.push(search)
    now += stepMs
    const inOrder = search.isDescending ? numbers : numbers.toReversed()
    const after = search.after?.value
    let at = after === undefined ? 0 : inOrder.indexOf(after) + 1
    const found: Item[] = []
    const end = Math.min(numbers.length, at + examinedMax)
    for (; at < end && found.length < search.countMax; at++) {
      if (at % matchEvery === 0) found.push({ createdAt: inOrder[at] } as Item)
    }
    const next = at < numbers.length ? { value: inOrder[at - 1] ?? 0, id: '' } : null
    return { letters: found, examinedCount: end, next, total: isCounted ? numbers.length : null }
  }
  return { letters: { list } as unknown as Letters, calls }
}
const plain = { isCounted: true, matchEvery: 1, examinedMax: Number.POSITIVE_INFINITY, stepMs: 1 }

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const read = async (letters: Letters, page: number, pageSize: number) => {
  const query = { filter: {}, order: 'deadLetteredAt', isDescending: true, page, pageSize } as const
  const found = await readNumberedPage(letters, query)
  return { ...found, letters: found.letters.map((item) => item.createdAt) }
}

let now = 0
beforeEach(() => {
  now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})

describe('numbered pages', () => {
  it('the pages of a list contain every letter once, and the last page may be shorter', async () => {
    const { letters } = createList(upTo(23))
    const pages = [await read(letters, 1, 10), await read(letters, 2, 10), await read(letters, 3, 10)]
    expect(pages.flatMap((page) => page.letters)).toEqual(upTo(23))
    expect(pages.map((page) => page.hasNext)).toEqual([true, true, false])
    expect(pages.map((page) => page.total)).toEqual([23, 23, 23])
  })

  it.each([4, 1_000_000, Number.MAX_SAFE_INTEGER])(
    'page %d after the end of the list is empty',
    async (page) => {
      const { letters, calls } = createList(upTo(30))
      expect(await read(letters, page, 10)).toEqual({ letters: [], total: 30, isExact: true, hasNext: false })
      expect(calls.length).toBe(1)
    },
  )

  it('pages near the start reflect the list at the time of the call', async () => {
    const numbers = upTo(30)
    const { letters } = createList(numbers)
    await read(letters, 1, 10)
    await read(letters, 2, 10)
    numbers.splice(0, 10)
    expect((await read(letters, 2, 10)).letters).toEqual(upTo(30).slice(20))
    expect((await read(letters, 3, 10)).letters).toEqual([])
  })

  it('a page far from the start continues where the page before ended', async () => {
    const { letters, calls } = createList(upTo(40_000))
    expect((await read(letters, 101, 100)).letters[0]).toBe(10_000)
    expect(calls.length).toBe(12)
    expect((await read(letters, 102, 100)).letters[0]).toBe(10_100)
    expect(calls.length).toBe(14)
    // Backwards, and after a minute, the page is reached from the nearest checkpoint or the start.
    expect((await read(letters, 96, 100)).letters[0]).toBe(9_500)
    now += 61_000
    expect((await read(letters, 103, 100)).letters[0]).toBe(10_200)
  })

  it('a page near the end is reached from the end', async () => {
    const { letters, calls } = createList(upTo(20_005))
    expect(await read(letters, 201, 100)).toEqual({
      letters: [20_000, 20_001, 20_002, 20_003, 20_004],
      total: 20_005,
      isExact: true,
      hasNext: false,
    })
    const before = await read(letters, 200, 100)
    expect([before.letters[0], before.letters.length, before.hasNext]).toEqual([19_900, 100, true])
    expect((await read(letters, 202, 100)).letters).toEqual([])
    expect(calls.length).toBeLessThan(10)
  })

  it('a page that is not reached in time is refused, and a second call reaches it', async () => {
    const { letters } = createList(upTo(30_000), { stepMs: 500 })
    await expect(read(letters, 141, 100)).rejects.toThrow(
      new KnownError('PAGE_TOO_DEEP', 'page 141 was not reached within 5000 ms'),
    )
    expect((await read(letters, 141, 100)).letters[0]).toBe(14_000)
  })

  it('the number of stored checkpoints is bounded', async () => {
    const { letters, calls } = createList(upTo(200_000))
    await read(letters, 1_000, 100)
    calls.length = 0
    await read(letters, 500, 100)
    expect(calls.length).toBeLessThan(10)
  })
})

describe('the total of a search', () => {
  it('the total of a search is exact if all letters were read', async () => {
    const { letters } = createList(upTo(5_000), { isCounted: false, matchEvery: 100, examinedMax: 1_000 })
    expect(await read(letters, 1, 20)).toMatchObject({ total: 50, isExact: true, hasNext: true })
    expect(await read(letters, 3, 20)).toMatchObject({ total: 50, isExact: true, hasNext: false })
    expect((await read(letters, 4, 20)).letters).toEqual([])
  })

  it('the total of a search is the number found in time, and grows with every call', async () => {
    const { letters } = createList(upTo(10_000), {
      isCounted: false,
      matchEvery: 100,
      examinedMax: 1_000,
      stepMs: 400,
    })
    const first = await read(letters, 1, 10)
    expect(first).toMatchObject({ isExact: false, hasNext: true })
    const second = await read(letters, 1, 10)
    expect(second.letters).toEqual(first.letters)
    expect(second.total).toBeGreaterThan(first.total)
    let last = second
    for (let times = 0; times < 10 && !last.isExact; times++) last = await read(letters, 1, 10)
    expect(last).toMatchObject({ total: 100, isExact: true })
  })

  it('a search without matches ends in time with a total that is not exact', async () => {
    const { letters } = createList(upTo(1_000_000), {
      isCounted: false,
      matchEvery: 10_000_000,
      examinedMax: 1_000,
      stepMs: 500,
    })
    expect(await read(letters, 1, 10)).toMatchObject({ isExact: false, letters: [0] })
    expect(now).toBeLessThanOrEqual(6_000)
  })
})
