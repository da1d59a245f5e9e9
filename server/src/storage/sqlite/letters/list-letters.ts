/**
 * Pages of letters. What the counts know (queue, state, group and what a group tells, redrives) is resolved to
 * the parts of an index that hold such letters; these are read in order and merged. What only a letter itself
 * tells is looked at one letter after the other, for no more than `lookMax` of them, and no longer than a moment.
 */
import { anyClass } from '../../../core/cause.ts'
import {
  type LetterBytes,
  type LetterCursor,
  type LetterFilter,
  type LettersPage,
  type LettersQuery,
  type ListedLetter,
  measureLetter,
  pageBytesMax,
} from '../../contract/letters.ts'
import { areRedrivesCounted, hasGroupConditions, readConditions } from '../../shared/counted-filter.ts'
import { matchesLetter } from '../../shared/match-letter.ts'
import type { Bound, Database, Values } from '../connection/database.ts'
import {
  countGroupColumns,
  countStateColumns,
  groupColumns,
  groupFieldColumns,
  printConditions,
} from '../counts/count-conditions.ts'
import {
  columnsWithout,
  itemColumnList,
  listedCodes,
  listedColumnList,
  toItem,
  toListedLetter,
} from '../items/rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import { MergedLetters, type Place, type PlacesOf, readPlaces, sortedPlaces } from './index-ranges.ts'
import { listRuns } from './key-runs.ts'

/** So many parts of an index are looked into for one page; where there are more, a larger part is walked. */
const partsMax = 300
/** A search gives what it found so far: other reads wait for the same thread. */
const readMsMax = 250
/** However slow it is: a step that looks at hardly anything gets nowhere. */
const lookedAtLeast = 64

type FindQuery = Omit<LettersQuery, 'bytes'>
/** `lookedAt`: how many were looked at until each place was found. */
type Found = Readonly<{
  places: readonly Place[]
  lookedAt: readonly number[]
  looked: number
  next: LetterCursor | null
}>

export function listLetters(database: Database, query: LettersQuery): LettersPage {
  const { places, lookedAt, looked, next } = findLetters(database, query)
  const names = readQueueNames(database)
  const sql = `select ${columnsOf[query.bytes]} from items where rowid = ?`
  const letters: ListedLetter[] = []
  let bytes = 0
  for (const [index, place] of places.entries()) {
    const row = database.array(sql, place.rowid)
    if (row === undefined) continue
    const name = names.get(row[0] as number) ?? ''
    const letter: ListedLetter = query.bytes === 'head' ? toListedLetter(row, name) : toItem(row, name)
    letters.push(letter)
    // SQLite reads all of a payload to give its beginning.
    if (query.bytes === 'head') bytes += letter.payloadBytes ?? letter.payload.length
    else bytes += measureLetter(letter)
    if (bytes >= pageBytesMax && place !== places.at(-1)) {
      return { letters, looked: lookedAt[index] ?? looked, next: { value: place.value, id: place.id } }
    }
  }
  return { letters, looked, next }
}

const columnsOf: Readonly<Record<LetterBytes, string>> = {
  none: columnsWithout(['key', 'headers', 'payload', 'history']),
  head: listedColumnList,
  all: itemColumnList,
}

export function findLetters(database: Database, query: FindQuery, msMax = readMsMax): Found {
  const { countMax, lookMax } = query
  const { parts, check } = planOf(database, query)
  const merged = new MergedLetters(parts, query.isDescending)
  const places: Place[] = []
  const lookedAt: number[] = []
  const until = performance.now() + msMax
  let looked = 0
  let last: Place | undefined
  while (places.length < countMax && looked < lookMax) {
    const place = merged.take()
    if (place === undefined) break
    last = place
    looked++
    if (check === undefined || check(place.rowid)) {
      places.push(place)
      lookedAt.push(looked)
    }
    if (check !== undefined && looked % lookedAtLeast === 0 && performance.now() > until) break
  }
  if (merged.isEmpty) return { places, lookedAt, looked, next: null }
  return { places, lookedAt, looked, next: last ? { value: last.value, id: last.id } : (query.after ?? null) }
}

type Plan = Readonly<{
  parts: readonly PlacesOf[]
  /** Undefined: everything in the parts matches. */
  check: ((rowid: number) => boolean) | undefined
}>

function planOf(database: Database, query: FindQuery): Plan {
  const { filter } = query
  const few = fewPlaces(database, query)
  if (few !== undefined) return { parts: few, check: checkOf(database, filter, { isPartExact: false }) }
  const cells = hasCellFilter(filter) ? cellsOf(database, filter) : undefined
  if (cells !== undefined && query.order === 'diedAt' && cells.length <= partsMax) {
    const parts = cells.map(({ groupId, state, redrives }) =>
      readPlaces(database, query, 'group_id = ? and letter_state = ? and letter_redrives = ?', [
        groupId,
        state,
        redrives,
      ]),
    )
    const isPartExact = areRedrivesCounted(filter.redrives)
    return { parts, check: checkOf(database, filter, { isPartExact, ...indexed(query) }) }
  }
  const pairs = cells === undefined ? queueStates(database, filter) : pairsOf(cells)
  const parts = pairs.map(({ queueId, state }) =>
    readPlaces(database, query, 'queue_id = ? and letter_state = ?', [queueId, state]),
  )
  const check = checkOf(database, filter, { isPartExact: cells === undefined, ...indexed(query) })
  return { parts, check }
}

/** The range that the index itself keeps to. */
function indexed(query: FindQuery): { died?: true; updated?: true } {
  return query.order === 'diedAt' ? { died: true } : { updated: true }
}

/** Letters with a key, and letters that are due, are few and have an index of their own. */
function fewPlaces(database: Database, query: FindQuery): readonly PlacesOf[] | undefined {
  const { filter, order, lookMax } = query
  const { key, dueBy } = filter
  if (key !== undefined && order === 'diedAt') {
    return listRuns(database).map((run) => readPlaces(database, query, ofKey, [run, key]))
  }
  const column = order === 'diedAt' ? 'died_at' : 'updated_at'
  const select = (where: string, values: readonly Bound[], countMax: number): Values[] =>
    database.arrays(`select ${column}, id, rowid from items where ${where} limit +?`, ...values, countMax)
  const rows: Values[] = []
  if (key !== undefined) {
    for (const run of listRuns(database)) {
      if (rows.length <= lookMax) rows.push(...select(ofKey, [run, key], lookMax + 1 - rows.length))
    }
  } else if (dueBy !== undefined) rows.push(...select('redrive_at <= ?', [dueBy], lookMax + 1))
  else return undefined
  return rows.length > lookMax ? undefined : [sortedPlaces(rows, query)]
}

const ofKey = 'key_run = ? and key = ? and group_id is not null'

function hasCellFilter(filter: LetterFilter): boolean {
  return hasGroupFilter(filter) || filter.redrives !== undefined
}

export function hasGroupFilter(filter: LetterFilter): boolean {
  return filter.groupIds !== undefined || hasGroupConditions(filter)
}

type Cell = Readonly<{ queueId: number; groupId: number; state: number; redrives: number }>

/** Where there are letters that the counted part of the filter asks for. */
function cellsOf(database: Database, filter: LetterFilter): Cell[] {
  const columns = { ...countGroupColumns, ...countStateColumns, ...groupFieldColumns }
  const { where, values } = printConditions(database, readConditions(filter, true), columns)
  const rows = database.arrays(
    `select c.queue_id, c.group_id, c.state, c.redrives from letter_counts c
       ${hasGroupConditions(filter) ? 'join groups g on g.id = c.group_id' : ''}
     where ${where}`,
    ...values,
  )
  return rows.map(([queueId, groupId, state, redrives]) => ({
    queueId: queueId as number,
    groupId: groupId as number,
    state: state as number,
    redrives: redrives as number,
  }))
}

type Pair = Readonly<{ queueId: number; state: number }>

function pairsOf(cells: readonly Cell[]): Pair[] {
  return [...new Map(cells.map((cell) => [`${cell.queueId}/${cell.state}`, cell])).values()]
}

/** From the counts of all items: what holds no letters is an empty part of the index, and costs one look. */
function queueStates(database: Database, filter: LetterFilter): Pair[] {
  const names = ['waiting', 'scheduled', 'leased', 'done', 'dead', 'discarded'] as const
  const rows = database.arrays(
    `select c.queue_id, ${names.map((name) => `sum(c.${name})`).join(', ')}, q.name
     from counts c join queues q on q.id = c.queue_id group by c.queue_id`,
  )
  const pairs: Pair[] = []
  for (const row of rows) {
    const [queueId, ...rest] = row
    if (filter.queues !== undefined && !filter.queues.includes(rest[names.length] as string)) continue
    for (const [index, name] of names.entries()) {
      if (rest[index] === 0 || (filter.states !== undefined && !filter.states.includes(name))) continue
      pairs.push({ queueId: queueId as number, state: listedCodes[name] })
    }
  }
  return pairs
}

/** What is left to be looked at in the letter itself; undefined when nothing is. */
function checkOf(
  database: Database,
  filter: LetterFilter,
  known: Readonly<{ isPartExact: boolean; died?: true; updated?: true }>,
): ((rowid: number) => boolean) | undefined {
  const { queues, states, groupIds, origins, reasons, slugs, errorClasses, redrives, ...detail } = filter
  const rest: LetterFilter = {
    ...(known.isPartExact ? {} : { queues, states, redrives }),
    ...(errorClasses !== undefined && isClassLost(database) ? { errorClasses } : {}),
    ...detail,
    ...(known.died ? { died: undefined } : {}),
    ...(known.updated ? { updated: undefined } : {}),
  } as LetterFilter
  const asked = Object.values(rest).some((value) => value !== undefined)
  const groups = known.isPartExact || !hasGroupFilter(filter) ? undefined : groupSet(database, filter)
  if (!asked && groups === undefined) return undefined

  const sql = `select ${neededColumns(rest)} from items where rowid = ?`
  const names = readQueueNames(database)
  return (rowid) => {
    const row = database.array(sql, rowid)
    if (row === undefined) return false
    const item = toItem(row, names.get(row[0] as number) ?? '')
    if (groups !== undefined && (item.groupId === null || !groups.has(item.groupId))) return false
    return matchesLetter(item, rest)
  }
}

export function groupSet(database: Database, filter: LetterFilter): ReadonlySet<number> {
  const { where, values } = printConditions(database, readConditions(filter, true), groupColumns)
  return new Set(
    database.arrays(`select g.id from groups g where ${where}`, ...values).map(([id]) => id as number),
  )
}

/** Whether there are letters of which only they themselves tell their class. */
function isClassLost(database: Database): boolean {
  const sql = "select 1 from groups where error_class = ? and slug = 'other' limit 1"
  return database.array(sql, anyClass) !== undefined
}

function hasFailureFilter({ text, lastFailed, errorClasses }: LetterFilter): boolean {
  return text !== undefined || lastFailed !== undefined || errorClasses !== undefined
}

/** Reading what is not asked for would cost more than the look itself. */
function neededColumns(filter: LetterFilter): string {
  return columnsWithout([
    'origin',
    'history',
    ...(hasFailureFilter(filter) ? [] : ['failure']),
    ...(filter.dueBy === undefined && filter.arrivedUntil === undefined ? ['letter'] : []),
    ...(filter.key === undefined ? ['key'] : []),
    ...(filter.header === undefined ? ['headers'] : []),
    ...(filter.json === undefined ? ['payload'] : []),
  ])
}
