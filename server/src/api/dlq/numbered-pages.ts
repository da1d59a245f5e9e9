/**
 * Numbered pages over lists that only have cursors.
 *
 * A page is reached by reading the list in steps. If that takes long, the cursors on the way are stored for a
 * minute (page-checkpoints.ts), so that the next page, or the same page again, starts from the nearest one.
 * Pages near the start are always read from the start, so they are exact at the time of the call.
 *
 * If the counts do not contain the total (for a search by text or time), the letters are counted by reading
 * on for up to `countMsMax`. A total that is not exact is the number found so far, and grows with every call.
 */
import type { Item } from '../../core/items/item.ts'
import { KnownError } from '../../errors.ts'
import type { Letters } from '../../letters/letters.ts'
import type { LetterCursor, LetterFilter, LetterOrder } from '../../storage/contract/letters.ts'
import { lettersFirst, searchMsLong } from '../../storage/search/pacer.ts'
import { type Checkpoint, openCheckpoints } from './page-checkpoints.ts'

export type NumberedQuery = Readonly<{
  filter: LetterFilter
  order: LetterOrder
  isDescending: boolean
  /** Starts at 1. */
  page: number
  pageSize: number
  /** Given if the caller knows it. */
  total?: number
}>
export type NumberedPage = Readonly<{
  letters: readonly Item[]
  total: number
  isExact: boolean
  hasNext: boolean
}>

/** Reads up to `countMax` letters after a cursor. A caller that needs payloads supplies its own function. */
export type ReadLetters = (
  from: Readonly<List & { after?: LetterCursor }>,
  countMax: number,
  msMax: number,
) => Promise<FoundLetters>
export type FoundLetters = Readonly<{
  letters: readonly Item[]
  next: LetterCursor | null
  total: number | null
}>

type List = Readonly<Pick<NumberedQuery, 'filter' | 'order' | 'isDescending'>>

const countMsMax = 500
/** From this offset on, the end of the list may be nearer than its start. */
const farOffset = 5_000

export async function readNumberedPage(
  letters: Letters,
  query: NumberedQuery,
  read: ReadLetters = readWithoutBytes(letters),
): Promise<NumberedPage> {
  const { filter, order, isDescending, page, pageSize } = query
  const startedMs = performance.now()
  const elapsedMs = (): number => performance.now() - startedMs
  const offset = (page - 1) * pageSize
  const list = { filter, order, isDescending }

  const total = query.total ?? (offset < farOffset ? null : await readTotal(letters, list))
  if (total !== null && offset >= farOffset && total - offset < offset) {
    const items = await readFromEnd(letters, query, total, read, elapsedMs)
    return { letters: items, total, isExact: true, hasNext: offset + items.length < total }
  }

  const walk = createWalk(letters, list, elapsedMs)
  const start = await walk.reach(offset, total, page)
  const { items, checkpoint } = await walk.readPage(start, offset, pageSize, read)
  const known = total ?? walk.total()
  if (known !== null) {
    return { letters: items, total: known, isExact: true, hasNext: offset + items.length < known }
  }
  const counted = await walk.countOn(checkpoint)
  return {
    letters: items,
    total: counted.offset,
    isExact: counted.isEnd,
    hasNext: counted.offset > offset + items.length,
  }
}

async function readTotal(letters: Letters, list: List): Promise<number | null> {
  return (await letters.list({ ...list, countMax: 1, bytes: 'none' })).total
}

/** Reads the list in reverse order: after the first page, callers most often ask for the last page. */
async function readFromEnd(
  letters: Letters,
  { filter, order, isDescending, page, pageSize }: NumberedQuery,
  total: number,
  read: ReadLetters,
  elapsedMs: () => number,
): Promise<readonly Item[]> {
  const count = Math.min(pageSize, total - (page - 1) * pageSize)
  if (count <= 0) return []
  const offset = total - (page - 1) * pageSize - count
  const walk = createWalk(letters, { filter, order, isDescending: !isDescending }, elapsedMs)
  const { items } = await walk.readPage(await walk.reach(offset, total, page), offset, count, read)
  return items.toReversed()
}

function createWalk(letters: Letters, list: List, elapsedMs: () => number) {
  const checkpoints = openCheckpoints(letters, JSON.stringify(list, encodeBytes))
  const readStep = readWithoutBytes(letters)
  let total: number | null = null

  const step = async (
    start: Checkpoint,
    countMax: number,
    read: ReadLetters,
    untilMs: number,
  ): Promise<[Checkpoint, FoundLetters]> => {
    const startedMs = performance.now()
    const after = start.cursor === null ? {} : { after: start.cursor }
    const found = await read({ ...list, ...after }, countMax, untilMs - elapsedMs())
    total ??= found.total
    const end = {
      offset: start.offset + found.letters.length,
      steps: start.steps + 1,
      walkedMs: start.walkedMs + performance.now() - startedMs,
      cursor: found.next,
      isEnd: found.next === null,
    }
    checkpoints.store(end)
    return [end, found]
  }

  return {
    /** Available after the first step. Null if the counts do not contain it. */
    total: () => total,

    /** Returns the checkpoint at `offset`, or the end of a list that is shorter. */
    reach: async (offset: number, known: number | null, page: number): Promise<Checkpoint> => {
      let at = checkpoints.findBefore(offset)
      while (at.offset < offset && !at.isEnd && offset < (known ?? total ?? Infinity)) {
        if (elapsedMs() > searchMsLong) {
          throw new KnownError('PAGE_TOO_DEEP', `page ${page} was not reached within ${searchMsLong} ms`)
        }
        ;[at] = await step(at, Math.min(lettersFirst, offset - at.offset), readStep, searchMsLong)
      }
      return at
    },

    readPage: async (start: Checkpoint, offset: number, count: number, read: ReadLetters) => {
      const items: Item[] = []
      let at = start
      while (at.offset >= offset && !at.isEnd && items.length < count && elapsedMs() < searchMsLong) {
        const [next, found] = await step(at, count - items.length, read, searchMsLong)
        items.push(...found.letters)
        at = next
      }
      return { items, checkpoint: at }
    },

    /** Counts on from `start`, or from the checkpoint that an earlier count reached. */
    countOn: async (start: Checkpoint): Promise<Checkpoint> => {
      let at = start.isEnd ? start : checkpoints.findLast(start)
      while (!at.isEnd && elapsedMs() < countMsMax) [at] = await step(at, lettersFirst, readStep, countMsMax)
      return at
    },
  }
}

function readWithoutBytes(letters: Letters): ReadLetters {
  return (from, countMax, msMax) => letters.list({ ...from, countMax, bytes: 'none', msMax })
}

/** A replacer for JSON, which has no type for bytes. */
function encodeBytes(_key: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value
}
