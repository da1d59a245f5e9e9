/** Finds the ranges of an index that hold the letters of a filter. */
import type { LetterFilter, RangesQuery, SearchOrder } from '../../contract/letters.ts'
import { rangesMax, sortedMax } from '../../search/range-limits.ts'
import { gauges } from '../../shared/counts/count-columns.ts'
import {
  areRedrivesCounted,
  hasGroupConditions,
  readConditions,
} from '../../shared/letters/counted-filter.ts'
import { encodeTracePrefix, traceHeaderStart, tracePrefixLength } from '../../shared/letters/trace-id.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Bound, Database } from '../connection/database.ts'
import {
  countGroupColumns,
  countStateColumns,
  groupFieldColumns,
  printConditions,
} from '../counts/count-conditions.ts'
import { resolveGroups } from '../groups/resolve-groups.ts'
import { listedCodes } from '../items/rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'
import { listRuns } from './key-runs.ts'
import { isArchivedLetterSql, isLetterSql } from './letter-rows.ts'

/** The table and the column of each order. */
export const orderColumns = {
  deadLetteredAt: { table: 'items', column: 'died_at', times: 'died' },
  updatedAt: { table: 'items', column: 'updated_at', times: 'updated' },
  archivedAt: { table: 'archive', column: 'archived_at', times: 'archived' },
} as const satisfies Record<
  SearchOrder,
  Readonly<{ table: string; column: string; times: keyof LetterFilter }>
>

/**
 * Ranges as plain data, because a search passes them to the reader thread with each step. `where` selects a
 * range by its values; the other columns of the index are the order of the query.
 */
export type IndexRanges = Readonly<{
  query: RangesQuery
  where: string
  ranges: readonly (readonly Bound[])[]
  /** The rows are few, and not in the order of the query. */
  isUnordered: boolean
  /** The letters match all conditions that counts and groups answer, so these need not be checked. */
  isExact: boolean
}>

export function findRanges(database: Database, given: RangesQuery): IndexRanges {
  const query = { ...given, filter: resolveGroups(database, nameQueues(database, given.filter)) }
  const { filter, order } = query
  const common = { query, isUnordered: false, isExact: false }
  const own = findOwnRanges(database, query)
  if (own !== undefined) return { ...common, ...own }
  if (order === 'archivedAt') {
    const queueIds = listLetterQueues(database, filter)
    return { ...common, where: 'queue_id = ?', ranges: queueIds.map((id) => [id]) }
  }
  const needsCounts = hasGroupFilter(filter) || filter.retryCount !== undefined
  const counts = needsCounts ? readCounts(database, filter) : undefined
  if (counts !== undefined && order === 'deadLetteredAt' && counts.length <= rangesMax) {
    const where = 'group_id = ? and letter_state = ? and letter_redrives = ?'
    const ranges = counts.map(({ groupId, state, retryCount }) => [groupId, state, retryCount])
    return { ...common, where, ranges, isExact: areRedrivesCounted(filter.retryCount) }
  }
  const states = counts === undefined ? listQueueStates(database, filter) : toQueueStates(counts)
  const where = 'queue_id = ? and letter_state = ?'
  const ranges = states.map(({ queueId, state }) => [queueId, state])
  return { ...common, where, ranges, isExact: counts === undefined }
}

/** Replaces namespaces by their queues, because a letter is compared with the names of queues. */
function nameQueues(database: Database, filter: LetterFilter): LetterFilter {
  const { namespaces, ...rest } = filter
  if (namespaces === undefined) return filter
  const ids = listLetterQueues(database, filter)
  const names = readQueueNames(database)
  return { ...rest, queues: ids.flatMap((id) => names.get(id) ?? []) }
}

type OwnRanges = Pick<IndexRanges, 'where' | 'ranges' | 'isUnordered'>

/** Letters with one id, key, trace or reference, and letters that are due, are few and have own indexes. */
function findOwnRanges(database: Database, query: RangesQuery): OwnRanges | undefined {
  const { filter, order } = query
  const { table } = orderColumns[order]
  const own = chooseIndex(database, filter, table)
  if (own === undefined) return undefined
  const { isByDeath, ...ranges } = own
  if (isByDeath && order === 'deadLetteredAt') return { ...ranges, isUnordered: false }
  return keepFew(database, table, { ...ranges, isUnordered: true })
}

/** `isByDeath`: the index has the letters of each range in the order of their deaths. */
function chooseIndex(
  database: Database,
  filter: LetterFilter,
  table: 'items' | 'archive',
): (Omit<OwnRanges, 'isUnordered'> & Readonly<{ isByDeath: boolean }>) | undefined {
  const { letterIds, sourceIds, traceIds, references, key, dueBy } = filter
  const isLive = table === 'items'
  if (letterIds !== undefined) {
    const where = `root_id = ? and ${isLive ? isLetterSql : isArchivedLetterSql}`
    return { where, ranges: [...new Set(letterIds)].map((id) => [id]), isByDeath: false }
  }
  if (sourceIds !== undefined) {
    const where = 'source_id = ? and source_id is not null and group_id is not null'
    const ids = [...new Set(sourceIds)]
    if (!isLive) return { where, ranges: ids.map((id) => [id]), isByDeath: false }
    const queueIds = listLetterQueues(database, filter)
    const ranges = ids.flatMap((id) => queueIds.map((queueId) => [id, queueId]))
    return { where: `${where} and queue_id = ?`, ranges, isByDeath: false }
  }
  if (traceIds !== undefined) {
    const ranges = [...new Set(traceIds)].map((id) => [encodeTracePrefix(id)])
    return { where: hasTraceSql, ranges, isByDeath: isLive }
  }
  if (isLive && key !== undefined) {
    const where = 'key_run = ? and key = ? and group_id is not null'
    return { where, ranges: listRuns(database).map((run) => [run, key]), isByDeath: true }
  }
  if (references !== undefined && !references.includes('')) {
    const where = `reference = ? and reference <> '' and group_id is not null`
    return { where, ranges: [...new Set(references)].map((text) => [text]), isByDeath: isLive }
  }
  if (!isLive || dueBy === undefined) return undefined
  return { where: 'redrive_at <= ?', ranges: [[dueBy]], isByDeath: false }
}

/** The text of the indexes `items_trace` and `archive_trace`. */
const hasTraceSql = `substr(headers, instr(headers, '${traceHeaderStart}') + ${traceHeaderStart.length}, ${tracePrefixLength}) = ?
  and instr(headers, '${traceHeaderStart}') > 0 and group_id is not null`

/** Undefined if the ranges have too many rows to sort them. */
function keepFew(database: Database, table: string, own: OwnRanges): OwnRanges | undefined {
  const sql = `select count(*) from (select 1 from ${table} where ${own.where} limit +?)`
  let left = sortedMax
  for (const values of own.ranges) {
    left -= readNumber(database.getArray(sql, ...values, left + 1) ?? [], 0)
    if (left < 0) return undefined
  }
  return own
}

/** Whether the filter has a condition on groups. */
export function hasGroupFilter(filter: LetterFilter): boolean {
  return filter.groupIds !== undefined || hasGroupConditions(filter)
}

type QueueState = Readonly<{ queueId: number; state: number }>
type LetterCountRow = QueueState & Readonly<{ groupId: number; retryCount: number }>

/** The counts of letters that match the counted part of the filter. */
function readCounts(database: Database, filter: LetterFilter): LetterCountRow[] {
  const columns = { ...countGroupColumns, ...countStateColumns, ...groupFieldColumns }
  const { where, values } = printConditions(database, readConditions(filter, true), columns)
  const rows = database.readArrays(
    `select c.queue_id, c.group_id, c.state, c.redrives from letter_counts c
       ${hasGroupConditions(filter) ? 'join groups g on g.id = c.group_id' : ''}
     where ${where}`,
    ...values,
  )
  return rows.map((row) => ({
    queueId: readNumber(row, 0),
    groupId: readNumber(row, 1),
    state: readNumber(row, 2),
    retryCount: readNumber(row, 3),
  }))
}

function toQueueStates(counts: readonly LetterCountRow[]): QueueState[] {
  return [...new Map(counts.map((count) => [`${count.queueId}/${count.state}`, count])).values()]
}

/**
 * From the counts of all items. A queue and state that has items but no letters is an empty range, which
 * costs one index lookup.
 */
function listQueueStates(database: Database, filter: LetterFilter): QueueState[] {
  const { where, values } = printConditions(database, readConditions(filter), { queue: 'c.queue_id' })
  const rows = database.readArrays(
    `select c.queue_id, ${gauges.map((gauge) => `sum(c.${gauge})`).join(', ')}
     from counts c where ${where} group by c.queue_id`,
    ...values,
  )
  return rows.flatMap((row) =>
    gauges
      .filter((state, index) => readNumber(row, index + 1) !== 0 && (filter.states?.includes(state) ?? true))
      .map((state) => ({ queueId: readNumber(row, 0), state: listedCodes[state] })),
  )
}

/** The selected queues that have or had letters. Other queues may have archived items, but no letters. */
function listLetterQueues(database: Database, filter: LetterFilter): number[] {
  const { where, values } = printConditions(database, readConditions(filter), { queue: 'q.id' })
  const sql = `select id from queues q where exists (select 1 from groups where queue_id = q.id) and ${where}`
  return database.readArrays(sql, ...values).map((row) => readNumber(row, 0))
}
