/**
 * Pages by number, for clients that count them, over lists that only go on from a place.
 *
 * The way to a page is walked in steps. Where walking takes long, the places that were passed are remembered for a
 * moment, so that the next page, or the same one asked for again, begins there. The first letters are
 * always walked anew: there a page is exactly what its number says at this instant.
 *
 * Where the counts cannot tell the total (a text, a time), it is counted by walking on for a while. A total that is
 * not exact is what was found so far, and grows when asked again.
 */
import type { Item } from '../../core/item.ts'
import { KnownError } from '../../errors.ts'
import type { Letters } from '../../letters/letters.ts'
import type { LetterCursor, LetterFilter, LetterOrder } from '../../storage/contract/letters.ts'

export type NumberedQuery = Readonly<{
  filter: LetterFilter
  order: LetterOrder
  isDescending: boolean
  /** From 1. */
  page: number
  pageSize: number
  /** Where the caller knows it. */
  total?: number
}>
export type NumberedPage = Readonly<{
  letters: readonly Item[]
  total: number
  isExact: boolean
  hasNext: boolean
}>

/** Reads `countMax` letters from a place on. Given by those who want more of a letter than a list needs. */
export type ReadLetters = (
  from: Readonly<Pick<NumberedQuery, 'filter' | 'order' | 'isDescending'> & { after?: LetterCursor }>,
  countMax: number,
) => Promise<Found>
export type Found = Readonly<{ letters: readonly Item[]; next: LetterCursor | null; total: number | null }>

const stepMax = 1_000
const reachMsMax = 5_000
const countMsMax = 500
/** What one step may take: the walk looks at the time between steps. */
const stepMsMax = 200
/** From there on it is worth asking whether the end of the list is nearer than its beginning. */
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
  const { items, place: end } = await walk.fill(await walk.reach(offset, total, page), offset, pageSize, read)
  const known = total ?? walk.total()
  if (known !== null) {
    return { letters: items, total: known, isExact: true, hasNext: offset + items.length < known }
  }
  const counted = await walk.countOn(end)
  return {
    letters: items,
    total: counted.offset,
    isExact: counted.isEnd,
    hasNext: counted.offset > offset + items.length,
  }
}

type List = Pick<NumberedQuery, 'filter' | 'order' | 'isDescending'>

async function readTotal(letters: Letters, list: List): Promise<number | null> {
  return (await letters.list({ ...list, countMax: 1, bytes: 'none', msMax: stepMsMax })).total
}

/** The same letters, walked to from the other side: what people ask for after the first page is the last one. */
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
  const { items } = await walk.fill(await walk.reach(offset, total, page), offset, count, read)
  return items.toReversed()
}

function createWalk(letters: Letters, list: List, elapsedMs: () => number) {
  const places = openCheckpoints(letters, JSON.stringify(list, encodeBytes))
  const readStep = readWithoutBytes(letters)
  let total: number | null = null

  const step = async (place: Checkpoint, countMax: number, read: ReadLetters): Promise<[Checkpoint, Found]> => {
    const beganMs = performance.now()
    const after = place.cursor === null ? {} : { after: place.cursor }
    const found = await read({ ...list, ...after }, countMax)
    total ??= found.total
    const passed = {
      offset: place.offset + found.letters.length,
      steps: place.steps + 1,
      walkedMs: place.walkedMs + performance.now() - beganMs,
      cursor: found.next,
      isEnd: found.next === null,
    }
    places.remember(passed)
    return [passed, found]
  }

  return {
    /** Null where the counts cannot tell. Known after the first step. */
    total: () => total,

    /** The place with so many letters before it, or where it turned out that there are fewer. */
    reach: async (offset: number, known: number | null, page: number): Promise<Checkpoint> => {
      let place = places.nearest(offset)
      while (place.offset < offset && !place.isEnd && offset < (known ?? total ?? Infinity)) {
        if (elapsedMs() > reachMsMax) {
          throw new KnownError('PAGE_TOO_DEEP', `page ${page} could not be reached in time`)
        }
        ;[place] = await step(place, Math.min(stepMax, offset - place.offset), readStep)
      }
      return place
    },

    fill: async (start: Checkpoint, offset: number, count: number, read: ReadLetters) => {
      const items: Item[] = []
      let place = start
      while (place.offset >= offset && !place.isEnd && items.length < count && elapsedMs() < reachMsMax) {
        const [next, found] = await step(place, count - items.length, read)
        items.push(...found.letters)
        place = next
      }
      return { items, place }
    },

    /** From there, or from where an earlier call got to with counting. */
    countOn: async (start: Checkpoint): Promise<Checkpoint> => {
      let place = start.isEnd ? start : places.furthest(start)
      while (!place.isEnd && elapsedMs() < countMsMax) [place] = await step(place, stepMax, readStep)
      return place
    },
  }
}

function readWithoutBytes(letters: Letters): ReadLetters {
  return (from, countMax) => letters.list({ ...from, countMax, bytes: 'none', msMax: stepMsMax })
}

/** So many letters are before it in the list; null: the beginning. */
type Checkpoint = Readonly<{
  offset: number
  /** What it took to get there from the beginning. */
  steps: number
  walkedMs: number
  cursor: LetterCursor | null
  isEnd: boolean
}>
type StoredCheckpoint = Checkpoint & Readonly<{ atMs: number }>

const listStart: Checkpoint = { offset: 0, steps: 0, walkedMs: 0, cursor: null, isEnd: false }
const checkpointMsMax = 60_000
/** Nearer to the beginning than this, walking anew costs little. */
const cheapStepsMax = 2
const cheapMsMax = 100
const checkpointsMax = 64
const listsMax = 100

/** Of each store's letters: a process may serve several. */
const checkpointsByLetters = new WeakMap<Letters, Map<string, StoredCheckpoint[]>>()

function openCheckpoints(letters: Letters, key: string) {
  const lists = checkpointsByLetters.get(letters) ?? new Map<string, StoredCheckpoint[]>()
  checkpointsByLetters.set(letters, lists)
  const fresh = (): readonly StoredCheckpoint[] =>
    (lists.get(key) ?? []).filter((place) => performance.now() - place.atMs < checkpointMsMax)
  return {
    remember: (place: Checkpoint): void => {
      const isNear = place.steps <= cheapStepsMax && place.walkedMs <= cheapMsMax
      if (isNear || place.isEnd) return
      const others = fresh().filter((other) => other.offset !== place.offset || isBefore(place, other))
      // Half of them still show the way: what is between is walked.
      const kept = others.length < checkpointsMax ? others : others.filter((_, index) => index % 2 === 1)
      // Deleted first: the order of a map is the order in which keys came, so the first is the oldest.
      lists.delete(key)
      lists.set(key, [...kept, { ...place, atMs: performance.now() }])
      const [oldest] = lists.keys()
      if (lists.size > listsMax && oldest !== undefined) lists.delete(oldest)
    },
    nearest: (offset: number): Checkpoint =>
      fresh()
        // The first page is always read from the beginning: what is new stands there.
        .filter((place) => offset > 0 && place.offset <= offset)
        .reduce<Checkpoint>(laterOf, listStart),
    furthest: (place: Checkpoint): Checkpoint => fresh().reduce<Checkpoint>(laterOf, place),
  }
}

function isBefore(a: Checkpoint, b: Checkpoint): boolean {
  return a.offset < b.offset || (a.offset === b.offset && a.steps < b.steps)
}

function laterOf(a: Checkpoint, b: Checkpoint): Checkpoint {
  return isBefore(a, b) ? b : a
}

/** JSON has no bytes of its own. */
function encodeBytes(_key: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value
}
