/** Finds the ranges of an index that hold the letters of a filter. */
import { Buffer } from 'node:buffer'
import { anyClass } from '../../../core/dead-letters/cause.ts'
import { isStorableText } from '../../../core/text/storable-text.ts'
import {
  type LetterFilter,
  type RangesQuery,
  redrivesCounted,
  type SearchOrder,
} from '../../contract/letters.ts'
import { rangesMax, sortedMax } from '../../search/range-limits.ts'
import {
  areRedrivesCounted,
  hasGroupConditions,
  readConditions,
} from '../../shared/letters/counted-filter.ts'
import { encodeTracePrefix, traceHeaderStart, tracePrefixLength } from '../../shared/letters/trace-id.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { type Connection, prepareStatement } from '../connection/connection.ts'
import { encodeInt4s, encodeUuids } from '../connection/encode-arrays.ts'
import {
  countColumns,
  groupFieldColumns,
  isInt4,
  type Parameter,
  printConditions,
  printTexts,
} from '../counts/count-conditions.ts'
import { resolveGroups } from '../groups/resolve-groups.ts'
import { stateCodes, stateNames } from '../items/rows.ts'
import { isKsuid } from './letter-rows.ts'
import type { RangeFacts } from './prefilter.ts'

/** The table, the column and the time range of each order. */
export const orderColumns = {
  deadLetteredAt: { table: 'items_sourced', column: 'died_at', times: 'died' },
  updatedAt: { table: 'items_sourced', column: 'updated_at', times: 'updated' },
  archivedAt: { table: 'archive', column: 'archived_at', times: 'archived' },
} as const satisfies Record<
  SearchOrder,
  Readonly<{ table: string; column: string; times: keyof LetterFilter }>
>

export type IndexRanges = Readonly<{
  query: RangesQuery
  count: number
  /** Up to three numbers for each range, as `w.a`, `w.b` and `w.c`. */
  keys: readonly [readonly number[], readonly number[], readonly number[]]
  /** The number of letters in each range, if known. */
  sizes?: readonly number[]
  /** Selects the range, on the table of the order as `f`. */
  printWhere: (parameter: Parameter) => string
  /** Conditions that all letters of the ranges meet. */
  facts: RangeFacts
  /** Conditions to check on each letter. */
  conditions: readonly string[]
  /** Some groups have letters of any error class (`foldCause`), so the class of each letter is compared. */
  isClassOpen?: boolean
}>
type FoundRanges = Omit<IndexRanges, 'query' | 'isClassOpen'>

export type Reader = Pick<Connection, 'query'>

export async function findIndexRanges(reader: Reader, given: RangesQuery): Promise<IndexRanges> {
  const filter = await resolveGroups(reader, await nameQueues(reader, given.filter))
  const query = { ...given, filter }
  const groups = hasGroupConditions(filter) ? await readGroups(reader, filter) : undefined
  const groupIds = groups?.map(({ id }) => id)
  const ranges = await chooseRanges(reader, query, groupIds)
  return { ...ranges, query, isClassOpen: groups?.some((group) => group.isClassOpen) ?? false }
}

/** Replaces namespaces by their queues, because a letter is compared with the names of queues. */
async function nameQueues(reader: Reader, filter: LetterFilter): Promise<LetterFilter> {
  const { namespaces, ...rest } = filter
  if (namespaces === undefined) return filter
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const named = printConditions(readConditions(filter), { queue: 'q.id' }, parameter)
  const text = `select q.name from redrive.queues q where q.is_sourced and ${named}`
  const rows = await reader.query(prepareStatement(text), values)
  return { ...rest, queues: rows.map((row) => readText(row, 'name')) }
}

async function chooseRanges(
  reader: Reader,
  query: RangesQuery,
  groupIds: readonly number[] | undefined,
): Promise<FoundRanges> {
  const { filter } = query
  const order = orderColumns[query.order].column
  const inGroups = [groupIds, filter.groupIds].flatMap((ids) =>
    ids === undefined ? [] : [printGroupIds(ids)],
  )
  const own = chooseIndex(query, inGroups)
  if (own !== undefined && ((own.isByDeath && order === 'died_at') || (await areFew(reader, query, own)))) {
    return own
  }
  if (order === 'archived_at') return createArchiveRanges(await listLetterQueues(reader, filter), inGroups)
  const needsCounts = inGroups.length > 0 || filter.retryCount !== undefined
  if (!needsCounts) return createStateRanges(await listQueueStates(reader, filter), order, [])
  const counts = await readCounts(reader, filter)
  if (order === 'died_at' && counts.length <= rangesMax) return createCountRanges(counts, filter)
  const states = [...new Map(counts.map((count) => [`${count.queueId}/${count.state}`, count])).values()]
  return createStateRanges(states, order, inGroups)
}

type OwnRanges = FoundRanges & Readonly<{ isByDeath: boolean }>

/**
 * Letters with one id, key, trace or reference, and letters that are due, are few and have indexes of their
 * own. `isByDeath`: the index has the letters of each range in the order of their deaths.
 */
function chooseIndex({ filter, order }: RangesQuery, conditions: readonly string[]): OwnRanges | undefined {
  const { letterIds, sourceIds, traceIds, references, key, dueBy } = filter
  const { table, column } = orderColumns[order]
  const isLive = table === 'items_sourced'
  /** One range per value. The number of the range selects the value. */
  const create = (
    count: number,
    printWhere: FoundRanges['printWhere'],
    isByDeath: boolean,
    facts = {},
  ): OwnRanges => {
    const numbers = Array.from({ length: count }, (_, index) => index + 1)
    const none = numbers.map(() => 0)
    const keys = [numbers, none, none] as const
    return { count, keys, printWhere, facts: { order: column, ...facts }, conditions, isByDeath }
  }
  if (letterIds !== undefined) {
    const known = letterIds.filter(isKsuid)
    const where = (parameter: Parameter) =>
      `f.uuid = any (${parameter(encodeUuids(known))}::uuid[]) and f.uuid is not null and f.group_id is not null`
    return create(known.length === 0 ? 0 : 1, where, false)
  }
  if (sourceIds !== undefined) {
    const where = (parameter: Parameter) =>
      `f.source_id = any (${printTexts(sourceIds, parameter)}) and f.source_id is not null and f.group_id is not null`
    return create(1, where, false)
  }
  if (traceIds !== undefined) {
    const prefixes = [...new Set(traceIds)].map(encodeTracePrefix)
    const where = (parameter: Parameter) => `${tracePrefix} = (${printTexts(prefixes, parameter)})[w.a]
      and strpos(f.headers, '${traceHeaderStart}') > 0 and f.group_id is not null`
    return create(prefixes.length, where, isLive)
  }
  if (isLive && key !== undefined) {
    const where = (parameter: Parameter) => {
      const bytes = parameter(Buffer.from(key))
      return `substring(f.key from 1 for 100) = substring(${bytes}::bytea from 1 for 100) and f.key = ${bytes}::bytea
        and f.key is not null and f.group_id is not null`
    }
    return create(1, where, true, { hasKey: true })
  }
  if (references !== undefined && !references.includes('')) {
    const known = [...new Set(references)].filter(isStorableText)
    const where = (parameter: Parameter) => {
      const wanted = `(${printTexts(known, parameter)})[w.a]`
      return `substring(f.reference from 1 for 100) = substring(${wanted} from 1 for 100) and f.reference = ${wanted}
        and f.reference is not null and f.group_id is not null`
    }
    return create(known.length, where, isLive)
  }
  if (!isLive || dueBy === undefined) return undefined
  const where = (parameter: Parameter) =>
    `f.redrive_at <= ${parameter(dueBy)}::int8 and f.redrive_at is not null and f.group_id is not null`
  return create(1, where, false, { isDue: true })
}

/** The expression of the indexes on traces. */
const tracePrefix = `substring(f.headers from strpos(f.headers, '${traceHeaderStart}') + ${traceHeaderStart.length} for ${tracePrefixLength})`

type QueueState = Readonly<{ queueId: number; state: number }>
type LetterCountRow = QueueState & Readonly<{ groupId: number; retryCount: number; n: number }>

function createStateRanges(
  states: readonly QueueState[],
  order: RangeFacts['order'],
  conditions: readonly string[],
): FoundRanges {
  return {
    count: states.length,
    keys: [states.map(({ queueId }) => queueId), states.map(({ state }) => state), states.map(() => 0)],
    // The index on the time of death has only rows that have one.
    printWhere: () =>
      'f.queue_id = w.a and f.state = w.b and f.group_id is not null and f.died_at is not null',
    facts: { order, hasState: true },
    conditions,
  }
}

function createCountRanges(counts: readonly LetterCountRow[], filter: LetterFilter): FoundRanges {
  return {
    count: counts.length,
    keys: [
      counts.map(({ groupId }) => groupId),
      counts.map(({ state }) => state),
      counts.map(({ retryCount }) => retryCount),
    ],
    sizes: counts.map(({ n }) => n),
    printWhere: () =>
      `f.group_id = w.a and f.state = w.b and least(f.redrives, ${redrivesCounted}) = w.c and f.group_id is not null`,
    facts: { order: 'died_at', hasState: true, hasRedrives: areRedrivesCounted(filter.retryCount) },
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
  const rows = await reader.query(prepareStatement(text), values)
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
  return (await reader.query(prepareStatement(text), values)).map((row) => ({
    queueId: readNumber(row, 'queue_id'),
    groupId: readNumber(row, 'group_id'),
    state: readNumber(row, 'state'),
    retryCount: readNumber(row, 'redrives'),
    n: readNumber(row, 'n'),
  }))
}

/** A queue and state without letters is an empty range, which costs one index lookup. */
async function listQueueStates(reader: Reader, filter: LetterFilter): Promise<QueueState[]> {
  const states = [...new Set(filter.states ?? stateNames)].map((state) => stateCodes[state])
  const queueIds = await listLetterQueues(reader, filter)
  return queueIds.flatMap((queueId) => states.map((state) => ({ queueId, state })))
}

/** The archive also has items that are not letters. They have no group. */
function createArchiveRanges(queueIds: readonly number[], conditions: readonly string[]): FoundRanges {
  const none = queueIds.map(() => 0)
  return {
    count: queueIds.length,
    keys: [queueIds, none, none],
    printWhere: () => 'f.queue_id = w.a',
    facts: { order: 'archived_at' },
    conditions: ['f.group_id is not null', ...conditions],
  }
}

/** The named queues that may have letters. */
async function listLetterQueues(reader: Reader, filter: LetterFilter): Promise<number[]> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const named = printConditions(readConditions(filter), { queue: 'q.id' }, parameter)
  const text = `select q.id from redrive.queues q where q.is_sourced and ${named} order by q.id`
  return (await reader.query(prepareStatement(text), values)).map((row) => readNumber(row, 'id'))
}

/** Whether the ranges have few enough rows to sort them. */
async function areFew(reader: Reader, { order }: RangesQuery, ranges: OwnRanges): Promise<boolean> {
  const values: unknown[] = []
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const [numbers] = ranges.keys
  const text = `select count(*) as n from (
      select from unnest(${parameter(encodeInt4s(numbers))}::int4[]) as w(a)
        join redrive.${orderColumns[order].table} f on ${ranges.printWhere(parameter)} limit ${sortedMax + 1}) d`
  const [row = {}] = await reader.query({ text }, values)
  return readNumber(row, 'n') <= sortedMax
}
