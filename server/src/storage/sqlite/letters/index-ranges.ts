/** Finds the ranges of an index that hold the letters of a filter. */
import type { LetterFilter, LettersQuery } from '../../contract/letters.ts'
import { gauges } from '../../shared/count-columns.ts'
import { areRedrivesCounted, hasGroupConditions, readConditions } from '../../shared/counted-filter.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import type { Bound, Database, Values } from '../connection/database.ts'
import {
  countGroupColumns,
  countStateColumns,
  groupFieldColumns,
  printConditions,
} from '../counts/count-conditions.ts'
import { listedCodes } from '../items/rows.ts'
import { listRuns } from './key-runs.ts'
import { orderColumn, type RangeReader, readLetterRange, sortRows } from './merge-ranges.ts'

/** Up to this number of ranges is read for a page. If there are more, fewer and larger ranges are read. */
const rangesMax = 300

/** `arrivedUntil`: only letters that arrived up to this number of the table `arrivals`. */
export type FindQuery = Omit<LettersQuery, 'bytes'> & Readonly<{ arrivedUntil?: number }>

/** Conditions that all letters of the ranges meet, so that they need not be checked. */
export type RangeFacts = Readonly<{
  /** The letters match all conditions that counts and groups answer. */
  isExact: boolean
  /** The time range of the filter that the ranges are limited to. */
  times?: 'died' | 'updated'
}>

export type IndexRanges = Readonly<{ readers: readonly RangeReader[]; facts: RangeFacts }>

export function findRanges(database: Database, query: FindQuery): IndexRanges {
  const { filter } = query
  const own = findOwnRanges(database, query)
  if (own !== undefined) return { readers: own, facts: { isExact: false } }
  const times = query.order === 'diedAt' ? 'died' : 'updated'
  const needsCounts = hasGroupFilter(filter) || filter.redrives !== undefined
  const counts = needsCounts ? readCounts(database, filter) : undefined
  if (counts !== undefined && query.order === 'diedAt' && counts.length <= rangesMax) {
    const where = 'group_id = ? and letter_state = ? and letter_redrives = ?'
    const readers = counts.map(({ groupId, state, redrives }) =>
      readLetterRange(database, query, where, [groupId, state, redrives]),
    )
    return { readers, facts: { isExact: areRedrivesCounted(filter.redrives), times } }
  }
  const states = counts === undefined ? listQueueStates(database, filter) : toQueueStates(counts)
  const readers = states.map(({ queueId, state }) =>
    readLetterRange(database, query, 'queue_id = ? and letter_state = ?', [queueId, state]),
  )
  return { readers, facts: { isExact: counts === undefined, times } }
}

const hasKeySql = 'key_run = ? and key = ? and group_id is not null'

/** Letters with one key, and letters that are due, are few and have an index of their own. */
function findOwnRanges(database: Database, query: FindQuery): readonly RangeReader[] | undefined {
  const { filter, order, examinedMax } = query
  const { key, dueBy } = filter
  if (key !== undefined && order === 'diedAt') {
    return listRuns(database).map((run) => readLetterRange(database, query, hasKeySql, [run, key]))
  }
  const select = (where: string, values: readonly Bound[], countMax: number): Values[] => {
    const sql = `select ${orderColumn(query)}, id, rowid from items where ${where} limit +?`
    return database.arrays(sql, ...values, countMax)
  }
  const rows: Values[] = []
  if (key !== undefined) {
    for (const run of listRuns(database)) {
      if (rows.length <= examinedMax)
        rows.push(...select(hasKeySql, [run, key], examinedMax + 1 - rows.length))
    }
  } else if (dueBy !== undefined) rows.push(...select('redrive_at <= ?', [dueBy], examinedMax + 1))
  else return undefined
  return rows.length > examinedMax ? undefined : [sortRows(rows, query)]
}

/** Whether the filter has a condition on groups. */
export function hasGroupFilter(filter: LetterFilter): boolean {
  return filter.groupIds !== undefined || hasGroupConditions(filter)
}

type QueueState = Readonly<{ queueId: number; state: number }>
type LetterCountRow = QueueState & Readonly<{ groupId: number; redrives: number }>

/** The counts of letters that match the counted part of the filter. */
function readCounts(database: Database, filter: LetterFilter): LetterCountRow[] {
  const columns = { ...countGroupColumns, ...countStateColumns, ...groupFieldColumns }
  const { where, values } = printConditions(database, readConditions(filter, true), columns)
  const rows = database.arrays(
    `select c.queue_id, c.group_id, c.state, c.redrives from letter_counts c
       ${hasGroupConditions(filter) ? 'join groups g on g.id = c.group_id' : ''}
     where ${where}`,
    ...values,
  )
  return rows.map((row) => ({
    queueId: readNumber(row, 0),
    groupId: readNumber(row, 1),
    state: readNumber(row, 2),
    redrives: readNumber(row, 3),
  }))
}

function toQueueStates(counts: readonly LetterCountRow[]): QueueState[] {
  return [...new Map(counts.map((count) => [`${count.queueId}/${count.state}`, count])).values()]
}

/**
 * From the counts of all items. A queue and state that has items but no letters is an empty range, which
 * costs one index lookup.
 */
function listQueueStates(database: Database, { queues, states }: LetterFilter): QueueState[] {
  const rows = database.arrays(
    `select c.queue_id, ${gauges.map((gauge) => `sum(c.${gauge})`).join(', ')}, q.name
     from counts c join queues q on q.id = c.queue_id group by c.queue_id`,
  )
  return rows
    .filter((row) => queues === undefined || queues.includes(readText(row, gauges.length + 1)))
    .flatMap((row) =>
      gauges
        .filter((state, index) => readNumber(row, index + 1) !== 0 && (states?.includes(state) ?? true))
        .map((state) => ({ queueId: readNumber(row, 0), state: listedCodes[state] })),
    )
}
