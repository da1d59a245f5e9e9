/** The places of letters in an order, read from parts of an index and merged. No row is read for that. */
import type { LetterCursor, LettersQuery } from '../../contract/letters.ts'
import type { Bound, Database, Values } from '../connection/database.ts'

export type Place = Readonly<{ value: number; id: string; rowid: number }>
/** Gives the next ones each time; none: it is at its end. */
export type PlacesOf = (countMax: number) => readonly Place[]
type Order = Pick<LettersQuery, 'filter' | 'order' | 'isDescending' | 'after'>

/** A part of an index whose remaining columns are the order. */
export function readPlaces(
  database: Database,
  query: Order,
  where: string,
  values: readonly Bound[],
): PlacesOf {
  const column = query.order === 'diedAt' ? 'died_at' : 'updated_at'
  const range = (query.order === 'diedAt' ? query.filter.died : query.filter.updated) ?? {}
  return readIndex(database, { ...query, table: 'items', column, range }, where, values)
}

export type IndexOrder = Readonly<{
  table: 'items' | 'archive'
  column: 'died_at' | 'updated_at' | 'archived_at'
  range: Readonly<{ from?: number; until?: number }>
  isDescending: boolean
  after?: LetterCursor
}>

export function readIndex(
  database: Database,
  query: IndexOrder,
  where: string,
  values: readonly Bound[],
): PlacesOf {
  const { table, column, range } = query
  const [first, last] = query.isDescending ? [range.until, range.from] : [range.from, range.until]
  const [beyond, before] = query.isDescending ? ['<', '>'] : ['>', '<']
  const direction = query.isDescending ? 'desc' : 'asc'
  const end = last === undefined ? '' : `and ${column} ${before}= ?`
  const tail = `${end} order by ${column} ${direction}, id ${direction} limit +?`
  const select = `select ${column}, id, rowid from ${table} where ${where}`

  let at = startOf(query, first)
  let isEnded = false
  return (countMax) => {
    if (isEnded) return []
    let start = ''
    const bound = [...values]
    if (at !== undefined) {
      start = `and (${column}, id) ${beyond} (?, ?)`
      bound.push(at.value, at.id)
    } else if (first !== undefined) {
      start = `and ${column} ${beyond}= ?`
      bound.push(first)
    }
    if (last !== undefined) bound.push(last)
    const places = database.arrays(`${select} ${start} ${tail}`, ...bound, countMax).map(placeOf)
    isEnded = places.length < countMax
    at = places.at(-1) ?? at
    return places
  }
}

/** After the cursor, unless the range begins later: then from there on, as if there were none. */
function startOf(
  query: Pick<Order, 'after' | 'isDescending'>,
  first: number | undefined,
): Readonly<{ value: number; id: string }> | undefined {
  const { after, isDescending } = query
  if (after === undefined || first === undefined) return after
  return (isDescending ? after.value <= first : after.value >= first) ? after : undefined
}

/** Rows that are all there, as places in the order that the query asks for. */
export function sortedPlaces(rows: readonly Values[], query: Order): PlacesOf {
  const { after } = query
  const compare = comparison(query.isDescending)
  let places = rows.map(placeOf).sort(compare)
  if (after !== undefined) places = places.filter((place) => compare(place, after) > 0)
  let given = 0
  return (countMax) => {
    const next = places.slice(given, given + countMax)
    given += next.length
    return next
  }
}

function placeOf([value, id, rowid]: Values): Place {
  return { value: value as number, id: id as string, rowid: rowid as number }
}

type Comparable = Pick<Place, 'value' | 'id'>

function comparison(isDescending: boolean): (a: Comparable, b: Comparable) => number {
  const sign = isDescending ? -1 : 1
  return (a, b) => sign * (a.value - b.value || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
}

const chunkMin = 16
const chunkMax = 1_024

type Part = { read: PlacesOf; places: readonly Place[]; at: number; chunk: number }

export class MergedLetters {
  /** Those that have a next place, in the order of it. */
  readonly #parts: Part[] = []
  readonly #compare: ReturnType<typeof comparison>

  constructor(parts: readonly PlacesOf[], isDescending: boolean) {
    this.#compare = comparison(isDescending)
    const chunk = parts.length === 1 ? chunkMin * 8 : chunkMin
    for (const read of parts) {
      const places = read(chunk)
      if (places.length > 0) this.#parts.push({ read, places, at: 0, chunk })
    }
    this.#parts.sort((a, b) => this.#compare(headOf(a), headOf(b)))
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0
  }

  take(): Place | undefined {
    const part = this.#parts.shift()
    if (part === undefined) return undefined
    const place = headOf(part)
    part.at++
    if (part.at === part.places.length) {
      part.chunk = Math.min(part.chunk * 2, chunkMax)
      part.places = part.read(part.chunk)
      part.at = 0
    }
    if (part.places.length > 0) this.#parts.splice(this.#rankOf(headOf(part)), 0, part)
    return place
  }

  /** How many of the others come before. */
  #rankOf(head: Place): number {
    let low = 0
    let high = this.#parts.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(headOf(this.#parts[middle] as Part), head) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

function headOf(part: Part): Place {
  return part.places[part.at] as Place
}
