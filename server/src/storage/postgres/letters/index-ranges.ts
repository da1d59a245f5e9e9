/** Finds the ranges of an index that hold the letters of a filter. */
import { anyClass } from '../../../core/cause.ts'
import { type LetterFilter, type LettersQuery, redrivesCounted } from '../../contract/letters.ts'
import { areRedrivesCounted, hasGroupConditions, readConditions } from '../../shared/counted-filter.ts'
import { readNumber } from '../../shared/row-values.ts'
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
import type { RangeFacts } from './prefilter.ts'

/** `arrivedUntil`: only letters that arrived up to this number of the sequence `arrivals`. */
export type FindQuery = Omit<LettersQuery, 'bytes'> & Readonly<{ arrivedUntil?: number }>

export type IndexRanges = Readonly<{
  count: number
  /** Up to three numbers for each range, as `w.a`, `w.b` and `w.c`. */
  keys: readonly [readonly number[], readonly number[], readonly number[]]
  /** The number of letters in each range, if known. */
  sizes?: readonly number[]
  /**
   * Fewer, larger ranges to try first. `expected`: the page is probably among this many of their first
   * letters.
   */
  larger?: IndexRanges & Readonly<{ expected: number }>
  /** Selects the range, on `items_sourced` as `f`. */
  where: (parameter: Parameter) => string
  /** Conditions that all letters of the ranges meet. */
  facts: RangeFacts
  /** Conditions to check on each letter. */
  conditions: readonly string[]
  /** Some groups have letters of any error class (`foldCause`), so the class of each letter is compared. */
  isClassOpen?: boolean
}>

type Reader = Pick<Connection, 'query'>

/** Up to this number of small ranges is read at once. */
const rangesFew = 40
/** Up to this number of small ranges is read, maybe after an attempt with larger ranges. */
const rangesMax = 300
/** Up to this number is read if larger ranges would read too many letters that do not match. */
const rangesMostMax = 5_000
/**
 * Larger ranges replace more than `rangesMax` small ones if the page is expected among fewer of their letters
 * than this.
 */
const largerLettersMax = 2_000
/** Larger ranges are tried first if the page is expected among fewer of their letters than this. */
const attemptLettersMax = 500
/** If more letters are due than this, they are not sorted but found in their queues. */
const dueMax = 20_000

export async function findRanges(reader: Reader, query: FindQuery): Promise<IndexRanges> {
  const { filter } = query
  const groups = hasGroupConditions(filter) ? await readGroups(reader, filter) : undefined
  const groupIds = groups?.map(({ id }) => id)
  const ranges = await chooseRanges(reader, query, groupIds)
  return { ...ranges, isClassOpen: groups?.some((group) => group.isClassOpen) ?? false }
}

async function chooseRanges(
  reader: Reader,
  query: FindQuery,
  groupIds: readonly number[] | undefined,
): Promise<IndexRanges> {
  const { filter } = query
  const order = query.order === 'diedAt' ? 'died_at' : 'updated_at'
  const inGroups = [groupIds, filter.groupIds].flatMap((ids) =>
    ids === undefined ? [] : [printGroupIds(ids)],
  )
  if (filter.key !== undefined && order === 'died_at') return createKeyRange(filter.key, inGroups)
  if (filter.dueBy !== undefined && (await areFewDue(reader, filter.dueBy))) {
    return createDueRange(filter.dueBy, order, inGroups)
  }
  const needsCounts = inGroups.length > 0 || filter.redrives !== undefined
  if (!needsCounts) return createStateRanges(await listQueueStates(reader, filter), order, [])
  const counts = await readCounts(reader, filter)
  const states = [...new Map(counts.map((count) => [`${count.queueId}/${count.state}`, count])).values()]
  if (order !== 'died_at') return createStateRanges(states, order, inGroups)
  if (counts.length <= rangesFew) return createCountRanges(counts, filter)
  return chooseRangeSize(reader, query, counts, states, createStateRanges(states, order, inGroups))
}

/**
 * Chooses between many small ranges that have only matching letters, and few larger ranges that have others
 * too.
 */
async function chooseRangeSize(
  reader: Reader,
  { filter, countMax }: FindQuery,
  counts: readonly LetterCountRow[],
  states: readonly QueueState[],
  rangesByState: IndexRanges,
): Promise<IndexRanges> {
  const sizes = await readStateSizes(reader, states)
  const larger = { ...rangesByState, sizes }
  // The number of letters to read if the matching ones are spread evenly.
  const expected = (countMax * sum(sizes)) / Math.max(1, sum(counts.map(({ n }) => n)))
  const areTooMany = counts.length > rangesMax && expected < largerLettersMax
  if (counts.length > rangesMostMax || areTooMany) return larger
  const ranges = createCountRanges(counts, filter)
  return expected < attemptLettersMax ? { ...ranges, larger: { ...larger, expected } } : ranges
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

const oneRange = { count: 1, keys: [[0], [0], [0]] } as const

function createKeyRange(key: Uint8Array, conditions: readonly string[]): IndexRanges {
  const where = (parameter: Parameter) => {
    const bytes = parameter(Buffer.from(key))
    return `substring(f.key from 1 for 100) = substring(${bytes}::bytea from 1 for 100) and f.key = ${bytes}::bytea
      and f.key is not null and f.group_id is not null`
  }
  return { ...oneRange, where, facts: { order: 'died_at', hasKey: true }, conditions }
}

function createDueRange(
  dueBy: number,
  order: RangeFacts['order'],
  conditions: readonly string[],
): IndexRanges {
  const where = (parameter: Parameter) =>
    `f.redrive_at <= ${parameter(dueBy)}::int8 and f.redrive_at is not null and f.group_id is not null`
  return { ...oneRange, where, facts: { order, isDue: true }, conditions }
}

type QueueState = Readonly<{ queueId: number; state: number }>
type LetterCountRow = QueueState & Readonly<{ groupId: number; redrives: number; n: number }>

function createStateRanges(
  states: readonly QueueState[],
  order: RangeFacts['order'],
  conditions: readonly string[],
): IndexRanges {
  return {
    count: states.length,
    keys: [states.map(({ queueId }) => queueId), states.map(({ state }) => state), states.map(() => 0)],
    // The index on the time of death has only rows that have one.
    where: () => 'f.queue_id = w.a and f.state = w.b and f.group_id is not null and f.died_at is not null',
    facts: { order, hasState: true },
    conditions,
  }
}

function createCountRanges(counts: readonly LetterCountRow[], filter: LetterFilter): IndexRanges {
  return {
    count: counts.length,
    keys: [
      counts.map(({ groupId }) => groupId),
      counts.map(({ state }) => state),
      counts.map(({ redrives }) => redrives),
    ],
    sizes: counts.map(({ n }) => n),
    where: () =>
      `f.group_id = w.a and f.state = w.b and least(f.redrives, ${redrivesCounted}) = w.c and f.group_id is not null`,
    facts: { order: 'died_at', hasState: true, hasRedrives: areRedrivesCounted(filter.redrives) },
    conditions: [],
  }
}

/** The ids are a constant of the statement, so that the database looks them up in a hash table. */
function printGroupIds(ids: readonly number[]): string {
  return `f.group_id = any ('{${ids.filter(isInt4).join(',')}}'::int4[])`
}

type Group = Readonly<{ id: number; isClassOpen: boolean }>

async function readGroups(reader: Reader, filter: LetterFilter): Promise<Group[]> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const columns = { ...groupFieldColumns, queue: 'g.queue_id' }
  const where = printConditions(readConditions(filter, true), columns, parameter)
  const isOpen = filter.errorClasses === undefined ? 'false' : `g.error_class = '${anyClass}'`
  const text = `select g.id, ${isOpen} as is_open from redrive.groups g where ${where}`
  const rows = await reader.query(prepared(text), values)
  return rows.map((row) => ({ id: readNumber(row, 'id'), isClassOpen: row.is_open === true }))
}

/** The counts of letters that match the counted part of the filter. */
async function readCounts(reader: Reader, filter: LetterFilter): Promise<LetterCountRow[]> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const conditions = readConditions(filter, true)
  const groups = hasGroupConditions(filter)
    ? `cross join lateral (select from redrive.groups g
        where g.id = c.group_id and ${printConditions(conditions, groupFieldColumns, parameter)} offset 0) g`
    : ''
  const text = `with c as materialized (
      select c.queue_id, c.group_id, c.state, c.redrives, sum(c.n)::int8 as n from redrive.letter_counts c
      where ${printConditions(conditions, countColumns, parameter)}
      group by c.queue_id, c.group_id, c.state, c.redrives having sum(c.n) > 0
    ) select c.* from c ${groups}`
  return (await reader.query(prepared(text), values)).map((row) => ({
    queueId: readNumber(row, 'queue_id'),
    groupId: readNumber(row, 'group_id'),
    state: readNumber(row, 'state'),
    redrives: readNumber(row, 'redrives'),
    n: readNumber(row, 'n'),
  }))
}

/** The number of letters of each queue and state. */
async function readStateSizes(reader: Reader, states: readonly QueueState[]): Promise<number[]> {
  const rows = await reader.query(
    prepared(`select c.queue_id, c.state, sum(c.n)::int8 as n from redrive.letter_sums c
        where c.queue_id = any ($1::int4[]) group by c.queue_id, c.state`),
    [int4s([...new Set(states.map(({ queueId }) => queueId))])],
  )
  const sizes = new Map(
    rows.map((row) => [`${readNumber(row, 'queue_id')}/${readNumber(row, 'state')}`, readNumber(row, 'n')]),
  )
  return states.map(({ queueId, state }) => sizes.get(`${queueId}/${state}`) ?? 0)
}

/** A queue and state without letters is an empty range, which costs one index lookup. */
async function listQueueStates(reader: Reader, filter: LetterFilter): Promise<QueueState[]> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const named = printConditions(readConditions(filter), { queue: 'q.id' }, parameter)
  const text = `select q.id from redrive.queues q where q.is_sourced and ${named} order by q.id`
  const rows = await reader.query(prepared(text), values)
  const states = [...new Set(filter.states ?? stateNames)].map((state) => stateCodes[state])
  return rows.flatMap((row) => states.map((state) => ({ queueId: readNumber(row, 'id'), state })))
}

async function areFewDue(reader: Reader, dueBy: number): Promise<boolean> {
  const [row = {}] = await reader.query(
    {
      text: `select count(*) as n from (
        select from redrive.items_sourced f where f.redrive_at <= $1 and f.redrive_at is not null limit ${dueMax + 1}) d`,
    },
    [dueBy],
  )
  return readNumber(row, 'n') <= dueMax
}
