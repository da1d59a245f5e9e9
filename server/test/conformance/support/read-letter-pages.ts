import { expect } from 'vitest'
import type { Item } from '../../../src/core/items/item.ts'
import type { LetterCursor } from '../../../src/storage/contract/letters.ts'
import { type LettersQuery, listLetters } from './list-letters.ts'
import type { StoreFixture } from './test-stores.ts'

/** Longer than the part of a key that indexes hold. */
export const longPrefix = 'p'.repeat(120)
export const undecodableBytes = new Uint8Array([0xff, 0xfe, 0x00, 0x80])

/** Reads all pages of a query and checks the limits of each page. */
export async function readLetterPages(
  given: StoreFixture,
  query: LettersQuery,
): Promise<(readonly Item[])[]> {
  const pages: (readonly Item[])[] = []
  let after: LetterCursor | undefined
  for (;;) {
    const page = await listLetters(given.storage, after === undefined ? query : { ...query, after })
    expect(page.letters.length).toBeLessThanOrEqual(query.countMax)
    expect(page.letters.length).toBeLessThanOrEqual(page.examinedCount)
    expect(page.examinedCount).toBeLessThanOrEqual(query.examinedMax)
    pages.push(page.letters)
    if (page.next === null) return pages
    if (after !== undefined) expect(page.next).not.toEqual(after)
    after = page.next
    if (pages.length > 2_000) throw new Error('more than 2,000 pages')
  }
}
