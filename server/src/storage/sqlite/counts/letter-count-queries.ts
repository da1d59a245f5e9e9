/** Numbers of letters, read from their counts. The cost depends on the number of groups, not of letters. */
import type { Instant } from '../../../core/time/instant.ts'
import type { CountedBy, LetterCount, LetterCountsQuery, OldestOpen } from '../../contract/letters.ts'
import { hasGroupConditions, readConditions } from '../../shared/letters/counted-filter.ts'
import { readNumber, readNumberOrNull, readText } from '../../shared/rows/row-values.ts'
import type { Database, Values } from '../connection/database.ts'
import { resolveGroups } from '../groups/resolve-groups.ts'
import { decodeListedState, listedCodes } from '../items/rows.ts'
import { readQueueIds, readQueueNames } from '../queues/queue-names.ts'
import {
  countGroupColumns,
  countStateColumns,
  groupFieldColumns,
  printConditions,
} from './count-conditions.ts'
import { openStates, usPerMinute } from './letter-counts.ts'

const byColumns: Record<CountedBy, string> = {
  queue: 'c.queue_id',
  state: 'c.state',
  group: 'coalesce(g.merged_into, g.id)',
  origin: 'g.origin',
  errorCode: 'g.reason',
  slug: 'g.slug',
  errorClass: 'g.error_class',
  retryCount: 'c.redrives',
}

export function countLetters(database: Database, { filter: given, by }: LetterCountsQuery): LetterCount[] {
  const filter = resolveGroups(database, given)
  const conditions = readConditions(filter)
  const columns = { ...countGroupColumns, ...countStateColumns, ...groupFieldColumns }
  const { where, values } = printConditions(database, conditions, columns)
  const selected = by.map((name) => byColumns[name])
  const isJoined = hasGroupConditions(filter) || selected.some((column) => column.includes('g.'))
  const rows = database.readArrays(
    `select sum(c.n)${selected.map((column) => `, ${column}`).join('')} from letter_counts c
       ${isJoined ? 'join groups g on g.id = c.group_id' : ''}
     where ${where}
     ${selected.length === 0 ? '' : `group by ${selected.join(', ')}`}`,
    ...values,
  )
  const names = by.includes('queue') ? readQueueNames(database) : new Map<number, string>()
  // Without letters the sum is null.
  return rows.filter(([count]) => count !== null && count !== 0).map((row) => decodeCount(row, by, names))
}

/** From a row of the sum, then one column for each of `by`. */
function decodeCount(row: Values, by: readonly CountedBy[], names: ReadonlyMap<number, string>): LetterCount {
  const decode = (name: CountedBy, index: number): string | number => {
    switch (name) {
      case 'queue':
        return names.get(readNumber(row, index)) ?? ''
      case 'state':
        return decodeListedState(readNumber(row, index))
      case 'group':
      case 'retryCount':
        return readNumber(row, index)
      default:
        return readText(row, index)
    }
  }
  const named = by.map((name, index) => [name, decode(name, index + 1)] as const)
  return { count: readNumber(row, 0), ...Object.fromEntries(named) }
}

const countMinutes = `select sum(n), sum(iif(minute = ?, n, 0)) from open_minutes
  where queue_id = ? and minute >= ?`
const countRows = `select count(*) from items
  where queue_id = ? and letter_state = ? and died_at >= ? and died_at < ?`

/** Reads whole minutes from their counts, and counts the rows of the minute in which `since` lies. */
export function countOpenSince(
  database: Database,
  since: Instant,
  queues: readonly string[] | undefined,
): number {
  const minute = Math.floor(since / usPerMinute)
  const end = (minute + 1) * usPerMinute
  const ids = queues === undefined ? [...readQueueNames(database).keys()] : readQueueIds(database, queues)
  let open = 0
  // Queue by queue, because the minutes of a queue are next to each other in the index.
  for (const queueId of new Set(ids)) {
    const row = database.getArray(countMinutes, minute, queueId, minute) ?? [null, null]
    const [fromMinute, inMinute] = [readNumberOrNull(row, 0) ?? 0, readNumberOrNull(row, 1) ?? 0]
    open += fromMinute - inMinute
    if (inMinute === 0) continue
    for (const state of openStates) {
      const counted = database.getArray(countRows, queueId, listedCodes[state], since, end) ?? []
      open += readNumber(counted, 0)
    }
  }
  return open
}

const oldestOpen = `select q.name, (
    select min(o.died_at) from (
      ${openStates
        .map(
          (state) =>
            `select min(died_at) as died_at from items
         where queue_id = q.id and letter_state = ${listedCodes[state]}`,
        )
        .join(' union all ')}) o) as died_at
  from json_each(?) n join queues q on q.name = n.value`

/** Reads the first entry of the index for each queue and state. */
export function readOldestOpen(database: Database, queues: readonly string[]): OldestOpen[] {
  const rows = database.readArrays(oldestOpen, JSON.stringify(queues))
  return rows.flatMap((row) => {
    const diedAt = readNumberOrNull(row, 1)
    return diedAt === null ? [] : [{ queue: readText(row, 0), diedAt }]
  })
}
