/**
 * One step of a search (storage/search). One statement reads a few letters of each range in order, and merges
 * them up to the point where one of the ranges may have more. So a page costs the number of ranges, not of
 * letters. The conditions that the ranges do not answer are checked letter by letter.
 */
import { takeTurn } from '../../../turns.ts'
import {
  headBytes,
  type LetterBytes,
  type LetterFilter,
  type LetterRanges,
  type LetterScan,
  type ListedLetter,
  type RangesQuery,
  type ScanBounds,
} from '../../contract/letters.ts'
import { growth } from '../../search/pacer.ts'
import { matchesLetter } from '../../shared/letters/match-letter.ts'
import { selectTraceHeader } from '../../shared/letters/trace-id.ts'
import { findIndexRanges, type IndexRanges, type Reader } from './index-ranges.ts'
import { type Hit, readPage } from './merge-ranges.ts'
import { printPrefilter } from './prefilter.ts'

export async function findRanges(reader: Reader, query: RangesQuery): Promise<LetterRanges> {
  const ranges = await findIndexRanges(reader, query)
  return { scan: (bounds) => scanLetters(reader, ranges, bounds) }
}

async function scanLetters(reader: Reader, ranges: IndexRanges, bounds: ScanBounds): Promise<LetterScan> {
  const { after, countMax, examinedMax, bytes, round } = bounds
  const { filter } = ranges.query
  if (ranges.count === 0) return { found: [], examinedCount: 0, next: null }
  // One letter more than requested shows whether there are more.
  const least = countMax + 1
  const isChecked = needsCheck(filter, ranges)
  const count = isChecked ? examinedMax : Math.min(examinedMax, least)
  // The database may pass letters that do not match here: then each further statement returns more.
  const wanted = isChecked ? Math.max(least, Math.min(least * growth ** round, count)) : least
  const page = await readPage(reader, ranges, {
    ...(after !== undefined && { after }),
    count,
    wanted,
    round,
    bytes,
  })
  const matching = await selectMatching(page.hits, filter)
  const taken = matching.slice(0, countMax)
  const found = taken.map(({ item, cursor }) => ({ item: keepBytes(item, bytes), at: cursor.value }))
  const last = matching.length > countMax ? taken.at(-1) : undefined
  if (last !== undefined) return { found, examinedCount: last.rank, next: last.cursor }
  const isComplete = page.hits.length < wanted
  if (isComplete && page.isEnd) return { found, examinedCount: page.examinedCount, next: null }
  // The statement returned all that it may: continue after the last letter that it returned.
  const lastHit = isComplete ? undefined : page.hits.at(-1)
  return {
    found,
    examinedCount: lastHit?.rank ?? page.examinedCount,
    next: lastHit?.cursor ?? page.last ?? after ?? null,
  }
}

/** Larger payloads are compared one per turn of the event loop. */
const turnBytesMin = 16 * 1_024

async function selectMatching(hits: readonly Hit[], filter: LetterFilter): Promise<readonly Hit[]> {
  const matching: Hit[] = []
  const isCompared = filter.json !== undefined || filter.payloadText !== undefined
  for (const hit of hits) {
    if (isCompared && hit.item.payload.length >= turnBytesMin) await takeTurn()
    if (matchesLetter(hit.item, filter)) matching.push(hit)
  }
  return matching
}

/** Removes the bytes that were read only to compare them. */
function keepBytes(letter: ListedLetter, bytes: LetterBytes): ListedLetter {
  const { payload } = letter
  switch (bytes) {
    case 'none':
      return { ...letter, payload: noBytes, key: null, headers: [], history: [] }
    case 'head': {
      const headers = selectTraceHeader(letter.headers)
      const head = { ...letter, payload: payload.slice(0, headBytes), headers, history: [] }
      return payload.length > headBytes ? { ...head, payloadBytes: payload.length } : head
    }
    case 'all':
      return letter
  }
}

const noBytes = new Uint8Array()

/** Whether letters of the ranges must be checked one by one. (Nearly all of them pass `arrivedUntil`.) */
function needsCheck(filter: LetterFilter, ranges: IndexRanges): boolean {
  return (
    ranges.conditions.length > 0 ||
    ranges.isClassOpen === true ||
    printPrefilter(filter, ranges.facts, () => '').length > 0 ||
    filter.text !== undefined ||
    filter.payloadText !== undefined
  )
}
