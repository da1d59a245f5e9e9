/**
 * The one search for letters. Lists, exports, previews, numbered pages, the archive, retention and campaigns
 * all call it.
 *
 * A store finds the ranges of an index that hold the letters of a filter, and scans them in steps. The search
 * asks for step after step until the page is full, the list ends, or its time is over. Then `next` says where
 * a later search continues, so a search over millions of letters is a series of short searches.
 */
import {
  type FoundLetter,
  type LetterBytes,
  type LetterCursor,
  type LetterScan,
  type LetterStore,
  measureLetter,
  pageBytesMax,
  type RangesQuery,
} from '../contract/letters.ts'
import { Pacer, type SearchLimits } from './pacer.ts'

export type LetterQuery = RangesQuery &
  Readonly<{
    /** Start after this position. */
    after?: LetterCursor
    countMax: number
    bytes: LetterBytes
  }>

type SearchedStore = Pick<LetterStore, 'findRanges'>

export async function searchLetters(
  store: SearchedStore,
  query: LetterQuery,
  limits: SearchLimits = {},
): Promise<LetterScan> {
  const { after: start, countMax, bytes, ...searched } = query
  const found: FoundLetter[] = []
  let after = start
  let examinedCount = 0
  let foundBytes = 0
  if (countMax < 1 || (limits.examinedMax ?? 1) < 1) return { found, examinedCount, next: after ?? null }
  const pacer = new Pacer(limits, countMax)
  const ranges = await store.findRanges(searched)
  for (let round = 0; ; round++) {
    const step = await ranges.scan({
      ...pacer.startStep(),
      ...(after !== undefined && { after }),
      countMax: countMax - found.length,
      bytes,
      round,
    })
    pacer.endStep(step.examinedCount)
    found.push(...step.found)
    examinedCount += step.examinedCount
    if (bytes === 'all') for (const { item } of step.found) foundBytes += measureLetter(item)
    const isFull = found.length >= countMax || foundBytes >= pageBytesMax
    if (step.next === null || isFull || pacer.isOver) return { found, examinedCount, next: step.next }
    after = step.next
  }
}

/**
 * Yields the results of one search after the other, until the end of the list. Each search finds its ranges
 * again, so that letters that change during a long read are found where they are.
 */
export async function* searchAll(
  store: SearchedStore,
  query: LetterQuery,
  limits: SearchLimits = {},
): AsyncGenerator<LetterScan> {
  for (let { after } = query; ; ) {
    const page = await searchLetters(store, after === undefined ? query : { ...query, after }, limits)
    yield page
    if (page.next === null) return
    after = page.next
  }
}
