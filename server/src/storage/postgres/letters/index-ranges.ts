/** Which parts of which index hold the letters that a filter asks for. */
import { anyClass } from '../../../core/cause.ts'
import type { LetterFilter } from '../../contract/letters.ts'
import { redrivesCounted } from '../../contract/letters.ts'
import { areRedrivesCounted, hasGroupConditions, readConditions } from '../../shared/counted-filter.ts'
import { type Connection, prepared } from '../connection/connection.ts'
import { int4s } from '../connection/encode-arrays.ts'
import {
  countColumns,
  groupFieldColumns,
  isInt4,
  type Parameter,
  printConditions,
} from '../counts/count-conditions.ts'
import { stateCodes, stateNames } from '../items/rows.ts'
import type { FindQuery } from './list-letters.ts'
import type { KnownToParts } from './prefilter.ts'

export type Parts = Readonly<{
  count: number
  /** Up to three numbers for each part, as `w.a`, `w.b` and `w.c`. */
  keys: readonly [readonly number[], readonly number[], readonly number[]]
  /** How many letters each part has, where that is known. */
  shares?: readonly number[]
  /** Fewer parts, and among how many of their letters the page probably is: to be tried first. */
  walk?: Parts & Readonly<{ walked: number }>
  /** On `items_sourced` as `f`: the index, and the part of it. */
  where: (parameter: Parameter) => string
  /** What holds for all of it. */
  known: KnownToParts
  /** What is to be asked of each letter besides. */
  conditions: readonly string[]
  /** Some are of groups that do not tell the class that is asked for. */
  isClassOpen?: boolean
}>

type Reader = Pick<Connection, 'query'>

/** Up to so many parts are looked into at once. */
const partsFew = 40
/** So many are looked into where a short walk did not find the page; more only where a walk would look at too many letters. */
const partsMax = 300
const partsMostMax = 5_000
const walkMax = 2_000
const shortWalkMax = 500
/** More letters that are due than these are not sorted, but found on a walk. */
const dueMax = 20_000

export async function partsOf(reader: Reader, query: FindQuery): Promise<Parts> {
  const { filter } = query
  const groups = hasGroupConditions(filter) ? await groupsOf(reader, filter) : undefined
  const parts = await partsWithin(
    reader,
    query,
    groups?.map(({ id }) => id),
  )
  return { ...parts, isClassOpen: groups?.some((group) => group.isClassOpen) ?? false }
}

async function partsWithin(
  reader: Reader,
  query: FindQuery,
  groups: readonly number[] | undefined,
): Promise<Parts> {
  const { filter } = query
  const order = query.order === 'diedAt' ? 'died_at' : 'updated_at'
  const ofGroups = groups === undefined ? [] : [isAmong('f.group_id', groups)]
  if (filter.groupIds !== undefined) ofGroups.push(isAmong('f.group_id', filter.groupIds))
  if (filter.key !== undefined && order === 'died_at') return partOfKey(filter.key, ofGroups)
  if (filter.dueBy !== undefined && (await areFewDue(reader, filter.dueBy))) {
    return partOfDue(filter.dueBy, order, ofGroups)
  }
  const isCell = groups !== undefined || filter.groupIds !== undefined || filter.redrives !== undefined
  if (!isCell) return pairs(await queueStates(reader, filter), order, [])
  const found = await cellsOf(reader, filter)
  const places = [...new Map(found.map((cell) => [`${cell.queueId}/${cell.state}`, cell])).values()]
  if (order !== 'died_at') return pairs(places, order, ofGroups)
  if (found.length <= partsFew) return cells(found, filter)
  const shares = await lettersIn(reader, places)
  const walk = { ...pairs(places, order, ofGroups), shares }
  // Were those wanted spread evenly among the others.
  const walked = (query.countMax * sum(shares)) / Math.max(1, sum(found.map(({ count }) => count)))
  if (found.length > partsMostMax || (found.length > partsMax && walked < walkMax)) return walk
  return { ...cells(found, filter), ...(walked < shortWalkMax && { walk: { ...walk, walked } }) }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

const noKeys = [0] as const

function partOfKey(key: Uint8Array, conditions: readonly string[]): Parts {
  const where = (parameter: Parameter) => {
    const bytes = parameter(Buffer.from(key))
    return `substring(f.key from 1 for 100) = substring(${bytes}::bytea from 1 for 100) and f.key = ${bytes}::bytea
      and f.key is not null and f.group_id is not null`
  }
  return {
    count: 1,
    keys: [noKeys, noKeys, noKeys],
    where,
    known: { order: 'died_at', isKey: true },
    conditions,
  }
}

function partOfDue(dueBy: number, order: KnownToParts['order'], conditions: readonly string[]): Parts {
  const where = (parameter: Parameter) =>
    `f.redrive_at <= ${parameter(dueBy)}::int8 and f.redrive_at is not null and f.group_id is not null`
  return { count: 1, keys: [noKeys, noKeys, noKeys], where, known: { order, isDue: true }, conditions }
}

type Pair = Readonly<{ queueId: number; state: number }>
type Cell = Pair & Readonly<{ groupId: number; redrives: number; count: number }>

function pairs(list: readonly Pair[], order: KnownToParts['order'], conditions: readonly string[]): Parts {
  return {
    count: list.length,
    keys: [list.map(({ queueId }) => queueId), list.map(({ state }) => state), list.map(() => 0)],
    // The index on the time of death has only what died.
    where: () => 'f.queue_id = w.a and f.state = w.b and f.group_id is not null and f.died_at is not null',
    known: { order, isPlace: true },
    conditions,
  }
}

function cells(list: readonly Cell[], filter: LetterFilter): Parts {
  return {
    count: list.length,
    keys: [
      list.map(({ groupId }) => groupId),
      list.map(({ state }) => state),
      list.map(({ redrives }) => redrives),
    ],
    shares: list.map(({ count }) => count),
    where: () =>
      `f.group_id = w.a and f.state = w.b and least(f.redrives, ${redrivesCounted}) = w.c and f.group_id is not null`,
    known: {
      order: 'died_at',
      isPlace: true,
      // Of redrives that are counted together only the letter itself tells how many there were.
      isRedrives: areRedrivesCounted(filter.redrives),
    },
    conditions: [],
  }
}

/** As a constant: the database then looks it up in a table that it makes once. */
function isAmong(column: string, ids: readonly number[]): string {
  return `${column} = any ('{${ids.filter(isInt4).join(',')}}'::int4[])`
}

type Group = Readonly<{ id: number; isClassOpen: boolean }>

async function groupsOf(reader: Reader, filter: LetterFilter): Promise<Group[]> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const columns = { ...groupFieldColumns, queue: 'g.queue_id' }
  const where = printConditions(readConditions(filter, true), columns, parameter)
  const isOpen = filter.errorClasses === undefined ? 'false' : `g.error_class = '${anyClass}'`
  const text = `select g.id, ${isOpen} as is_open from redrive.groups g where ${where}`
  const rows = await reader.query(prepared(text), values)
  return rows.map((row) => ({ id: row.id as number, isClassOpen: row.is_open === true }))
}

/** Where there are letters that the counted part of the filter asks for. */
async function cellsOf(reader: Reader, filter: LetterFilter): Promise<Cell[]> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const conditions = readConditions(filter, true)
  const groups = hasGroupConditions(filter)
    ? `cross join lateral (
        select from redrive.groups g where g.id = c.group_id and ${printConditions(conditions, groupFieldColumns, parameter)} offset 0) g`
    : ''
  const text = `with c as materialized (
      select c.queue_id, c.group_id, c.state, c.redrives, sum(c.n)::int8 as n from redrive.letter_counts c
      where ${printConditions(conditions, countColumns, parameter)}
      group by c.queue_id, c.group_id, c.state, c.redrives having sum(c.n) > 0
    ) select c.* from c ${groups}`
  return (await reader.query(prepared(text), values)).map((row) => ({
    queueId: row.queue_id as number,
    groupId: row.group_id as number,
    state: row.state as number,
    redrives: row.redrives as number,
    count: row.n as number,
  }))
}

/** How many letters there are of each queue and state. */
async function lettersIn(reader: Reader, places: readonly Pair[]): Promise<number[]> {
  const rows = await reader.query(
    prepared(`select c.queue_id, c.state, sum(c.n)::int8 as n from redrive.letter_sums c
        where c.queue_id = any ($1::int4[]) group by c.queue_id, c.state`),
    [int4s([...new Set(places.map(({ queueId }) => queueId))])],
  )
  const counts = new Map(rows.map((row) => [`${row.queue_id}/${row.state}`, row.n as number]))
  return places.map(({ queueId, state }) => counts.get(`${queueId}/${state}`) ?? 0)
}

/** What holds no letters is an empty part of the index, and costs one look. */
async function queueStates(reader: Reader, filter: LetterFilter): Promise<Pair[]> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const named = printConditions(readConditions(filter), { queue: 'q.id' }, parameter)
  const text = `select q.id from redrive.queues q where q.is_sourced and ${named} order by q.id`
  const rows = await reader.query(prepared(text), values)
  const states = [...new Set(filter.states ?? stateNames)].map((state) => stateCodes[state])
  return rows.flatMap((row) => states.map((state) => ({ queueId: row.id as number, state })))
}

async function areFewDue(reader: Reader, dueBy: number): Promise<boolean> {
  const [row] = await reader.query(
    {
      text: `select count(*) as n from (
        select from redrive.items_sourced f where f.redrive_at <= $1 and f.redrive_at is not null limit ${dueMax + 1}) d`,
    },
    [dueBy],
  )
  return (row?.n as number) <= dueMax
}
