/**
 * Pages of letters. Counts answer the conditions on queue, state, group and redrives: they give the ranges of
 * an index that hold such letters. A statement reads a few letters of each range in order, and merges them up
 * to the point where one of the ranges may have more. So a page costs the number of ranges, not of letters.
 * All other conditions are checked letter by letter, in statements that are each short.
 */

import { takeTurn } from '../../../turns.ts'
import {
  headBytes,
  type LetterBytes,
  type LetterCursor,
  type LetterFilter,
  type LettersPage,
  type LettersQuery,
  type ListedLetter,
  measureLetter,
  pageBytesMax,
} from '../../contract/letters.ts'
import { matchesLetter } from '../../shared/match-letter.ts'
import type { Connection } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { type FindQuery, findRanges, type IndexRanges } from './index-ranges.ts'
import { type Hit, type Page, readPage } from './merge-ranges.ts'
import { printPrefilter } from './prefilter.ts'

type Reader = Pick<Connection, 'query'>

/** Letters that one statement reads: more after a fast statement, fewer after a slow one. */
const stepMin = 250
const stepFirst = 1_000
const stepMax = 8_000
const fastMs = 40
const slowMs = 200
/** A search returns after this time with what it found. */
const searchMsMax = 400
/** A statement returns at most this many letters that the database passed. Some of them may not match. */
const hitsMax = 1_000
/** Larger payloads are parsed one per turn of the event loop. */
const turnBytesMin = 16 * 1_024
/** The attempt with larger ranges continues this often if one of them has more letters than expected. */
const largerRounds = 3

export async function listLetters(connections: Connections, query: LettersQuery): Promise<LettersPage> {
  const reader = { query: connections.read.bind(connections) }
  const { found, examinedCount, next } = await search(reader, query, query.bytes)
  return { letters: found.map(({ item }) => keepBytes(item, query.bytes)), examinedCount, next }
}

/** Removes the bytes that were read only to compare them. */
function keepBytes(letter: ListedLetter, bytes: LetterBytes): ListedLetter {
  const { payload } = letter
  switch (bytes) {
    case 'none':
      return { ...letter, payload: noBytes, key: null, headers: [], history: [] }
    case 'head': {
      const head = { ...letter, payload: payload.slice(0, headBytes), headers: [], history: [] }
      return payload.length > headBytes ? { ...head, payloadBytes: payload.length } : head
    }
    case 'all':
      return letter
  }
}

const noBytes = new Uint8Array()

export type FoundLetters = Readonly<{ letterIds: string[]; examinedCount: number; next: LetterCursor | null }>

export async function findLetters(reader: Reader, query: FindQuery): Promise<FoundLetters> {
  const { found, examinedCount, next } = await search(reader, query, 'none')
  return { letterIds: found.map(({ item }) => item.rootId), examinedCount, next }
}

type Found = Readonly<{ found: Hit[]; examinedCount: number; next: LetterCursor | null }>

async function search(reader: Reader, query: FindQuery, bytes: LetterBytes): Promise<Found> {
  if (query.countMax < 1 || query.examinedMax < 1)
    return { found: [], examinedCount: 0, next: query.after ?? null }
  const ranges = await findRanges(reader, query)
  if (ranges.count === 0) return { found: [], examinedCount: 0, next: null }
  const isSearch = needsCheck(query.filter, ranges)
  if (ranges.larger !== undefined && !isSearch) {
    const found = await tryLarger(reader, query, ranges.larger, bytes)
    if (found !== undefined) return found
  }
  return new PageSearch(reader, query, ranges, isSearch, bytes).run()
}

/** Reads step by step until the page is full, or the limits of the query or of time are reached. */
class PageSearch {
  readonly #reader: Reader
  readonly #query: FindQuery
  readonly #ranges: IndexRanges
  /** Letters must be checked one by one, and most of them may not match. */
  readonly #isSearch: boolean
  readonly #bytes: LetterBytes
  readonly #countMax: number
  readonly #found: Hit[] = []
  #after: LetterCursor | undefined
  #examinedCount = 0
  #step = stepFirst
  /**
   * How many times more letters are requested than are missing. It grows if letters pass in the database and
   * do not match here: otherwise each statement would stop after the few letters that are missing.
   */
  #surplus = 1

  constructor(reader: Reader, query: FindQuery, ranges: IndexRanges, isSearch: boolean, bytes: LetterBytes) {
    this.#reader = reader
    this.#query = query
    this.#ranges = ranges
    this.#isSearch = isSearch
    this.#bytes = bytes
    this.#countMax = isSearch ? query.countMax : Math.min(query.countMax, query.examinedMax)
    this.#after = query.after
  }

  async run(): Promise<Found> {
    const deadline = performance.now() + searchMsMax
    for (let round = 0; ; round++) {
      const least = this.#countMax - this.#found.length + 1
      const wanted = Math.max(least, Math.min(least * this.#surplus, hitsMax))
      const page = await this.#readPage(wanted, round)
      const isMore = await this.#collect(page)
      const isComplete = page.hits.length < wanted
      if (!isMore && isComplete && page.isEnd)
        return this.#end(this.#examinedCount + page.examinedCount, null)
      const last = this.#found.at(-1)
      if (last !== undefined && this.#isFull()) {
        return this.#end(this.#examinedCount + rankOf(last, page), last.cursor)
      }
      this.#moveBehind(page, isComplete)
      if (this.#examinedCount >= this.#query.examinedMax || performance.now() > deadline) {
        return this.#end(this.#examinedCount, this.#after ?? null)
      }
    }
  }

  #isFull(): boolean {
    return this.#found.length === this.#countMax || isHeavy(this.#found, this.#bytes)
  }

  /** `isComplete`: the page has all letters that passed, so the next one starts behind all that were read. */
  #moveBehind(page: Page, isComplete: boolean): void {
    const lastHit = page.hits.at(-1)
    this.#examinedCount += isComplete ? page.examinedCount : (lastHit?.rank ?? 0)
    this.#after = (isComplete ? page.last : lastHit?.cursor) ?? this.#after
  }

  #end(examinedCount: number, next: LetterCursor | null): Found {
    return { found: this.#found, examinedCount, next }
  }

  async #readPage(wanted: number, round: number): Promise<Page> {
    const { arrivedUntil, examinedMax } = this.#query
    const query = this.#after === undefined ? this.#query : { ...this.#query, after: this.#after }
    // Letters may arrive after `arrivedUntil`, so even without a search not every letter that is read
    // matches.
    const areAllMatching = !this.#isSearch && arrivedUntil === undefined
    const allowed = Math.min(examinedMax - this.#examinedCount, this.#isSearch ? this.#step : wanted)
    const count = areAllMatching ? wanted : allowed
    const startedAt = performance.now()
    const page = await readPage(this.#reader, query, this.#ranges, {
      count,
      wanted,
      round,
      bytes: this.#bytes,
    })
    const tookMs = performance.now() - startedAt
    if (tookMs < fastMs) this.#step = Math.min(this.#step * 2, stepMax)
    else if (tookMs > slowMs) this.#step = Math.max(Math.floor(this.#step / 2), stepMin)
    return page
  }

  /** True: one letter more than requested matches, so that there are more letters for certain. */
  async #collect(page: Page): Promise<boolean> {
    let matching = 0
    const isJson = this.#query.filter.json !== undefined
    for (const hit of page.hits) {
      if (isJson && hit.item.payload.length >= turnBytesMin) await takeTurn()
      if (!matchesLetter(hit.item, this.#query.filter)) continue
      matching++
      if (this.#found.length === this.#countMax) return true
      this.#found.push(hit)
    }
    if (page.hits.length > 2 * matching) this.#surplus = Math.min(this.#surplus * 8, hitsMax)
    return false
  }
}

/** Whether the letters found have enough bytes for a page. */
function isHeavy(found: readonly Hit[], bytes: LetterBytes): boolean {
  return bytes === 'all' && found.reduce((sum, { item }) => sum + measureLetter(item), 0) >= pageBytesMax
}

/** Tries to find the page among the first letters of larger ranges. Undefined: it was not found there. */
async function tryLarger(
  reader: Reader,
  query: FindQuery,
  ranges: NonNullable<IndexRanges['larger']>,
  bytes: LetterBytes,
): Promise<Found | undefined> {
  const { filter, countMax } = query
  const examinedMax = Math.min(Math.ceil(1.5 * ranges.expected) + 100, query.examinedMax)
  const found: Hit[] = []
  let { after } = query
  let examinedCount = 0
  for (let round = 0; round < largerRounds && examinedCount < examinedMax; round++) {
    const step = { count: examinedMax - examinedCount, wanted: countMax - found.length + 1, round, bytes }
    const page = await readPage(reader, after === undefined ? query : { ...query, after }, ranges, step)
    found.push(...page.hits.filter(({ item }) => matchesLetter(item, filter)))
    const isFull = found.length > countMax
    const last = isFull ? found[countMax - 1] : found.at(-1)
    if (last !== undefined && (isFull || (isHeavy(found, bytes) && !page.isEnd))) {
      return {
        found: found.slice(0, countMax),
        examinedCount: examinedCount + rankOf(last, page),
        next: last.cursor,
      }
    }
    if (page.isEnd || page.hits.length === step.wanted) return undefined
    examinedCount += page.examinedCount
    after = page.last ?? after
  }
  return undefined
}

/** The number of letters of the page that were read to find it. 0: an earlier statement found it. */
function rankOf(hit: Hit, page: Page): number {
  return page.hits.includes(hit) ? hit.rank : 0
}

/** Whether letters of the ranges must be checked one by one. (Nearly all of them pass `arrivedUntil`.) */
function needsCheck(filter: LetterFilter, ranges: IndexRanges): boolean {
  return (
    ranges.conditions.length > 0 ||
    ranges.isClassOpen === true ||
    printPrefilter(filter, ranges.facts, () => '').length > 0 ||
    filter.text !== undefined
  )
}
