/** Lists the groups of letters, with numbers from the counts. */
import type { Instant } from '../../../core/instant.ts'
import type { ListedState } from '../../contract/items.ts'
import type { GroupArrivals, GroupFacts, GroupSlug, GroupsQuery } from '../../contract/letters.ts'
import { hasGroupConditions, readConditions } from '../../shared/counted-filter.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import type { Bound, Database, Row } from '../connection/database.ts'
import {
  countGroupColumns,
  countStateColumns,
  groupColumns,
  groupFieldColumns,
  type PrintedConditions,
  printConditions,
} from '../counts/count-conditions.ts'
import { usPerHour } from '../counts/letter-counts.ts'
import { decodeListedState } from '../items/rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'

export function listGroups(database: Database, query: GroupsQuery): GroupFacts[] {
  const states = printConditions(database, readConditions(query.filter), countStateColumns)
  const page = readPage(database, query, states)
  const names = readQueueNames(database)
  return page.flatMap(({ groupId, count }) => {
    const row = database.get('select * from groups where id = ?', groupId)
    if (row === undefined) return []
    const group = decodeGroup(row)
    const { queueId, ...facts } = group
    const lastSeenAt = readLastSeen(database, group)
    return {
      ...facts,
      queue: names.get(queueId) ?? '',
      // The first letter of a group may have come from the archive. Then its death is not an arrival.
      firstSeenAt: Math.min(facts.firstSeenAt, lastSeenAt),
      lastSeenAt,
      sampleId: findNewest(database, group),
      count,
      states: readStates(database, group, states),
    }
  })
}

type GroupCount = Readonly<{ groupId: number; count: number }>

function readPage(
  database: Database,
  { filter, after, countMax, isEmptyToo }: GroupsQuery,
  states: PrintedConditions,
): GroupCount[] {
  const columns = isEmptyToo ? groupColumns : { ...countGroupColumns, ...groupFieldColumns }
  const groups = printConditions(database, readConditions(filter), columns)
  const id = isEmptyToo ? 'g.id' : 'c.group_id'
  const count = 'coalesce(sum(c.n), 0)'
  const source = isEmptyToo
    ? `groups g left join letter_counts c on c.queue_id = g.queue_id and c.group_id = g.id and ${states.where}
       where ${groups.where}`
    : `letter_counts c ${hasGroupConditions(filter) ? 'join groups g on g.id = c.group_id' : ''}
       where ${states.where} and ${groups.where}`
  const values: Bound[] = [...states.values, ...groups.values]
  if (after !== undefined) values.push(after.count, after.count, after.id)
  const rows = database.readArrays(
    `select ${id}, ${count} from ${source} group by ${id}
     ${after === undefined ? '' : `having ${count} < ? or (${count} = ? and ${id} > ?)`}
     order by 2 desc, 1 limit +?`,
    ...values,
    countMax,
  )
  return rows.map((row) => ({ groupId: readNumber(row, 0), count: readNumber(row, 1) }))
}

type Group = ReturnType<typeof decodeGroup>

/** From a row of `groups`. */
function decodeGroup(row: Row) {
  return {
    id: readNumber(row, 'id'),
    queueId: readNumber(row, 'queue_id'),
    fingerprint: readText(row, 'fingerprint'),
    origin: readText(row, 'origin'),
    errorCode: readText(row, 'reason'),
    slug: readText(row, 'slug'),
    errorClass: readText(row, 'error_class'),
    title: readText(row, 'title'),
    firstSeenAt: readNumber(row, 'first_seen_at'),
  }
}

function readStates(
  database: Database,
  { id, queueId }: Group,
  states: PrintedConditions,
): Partial<Record<ListedState, number>> {
  const rows = database.readArrays(
    `select c.state, sum(c.n) from letter_counts c where c.queue_id = ? and c.group_id = ? and ${states.where}
     group by c.state`,
    queueId,
    id,
    ...states.values,
  )
  return Object.fromEntries(rows.map((row) => [decodeListedState(readNumber(row, 0)), readNumber(row, 1)]))
}

/** A group that was created for a letter from the archive may have had no arrival since. */
function readLastSeen(database: Database, { id, firstSeenAt }: Group): Instant {
  const sql = 'select last_at from group_hours where group_id = ? order by hour desc limit 1'
  const row = database.getArray(sql, id)
  return row === undefined ? firstSeenAt : readNumber(row, 0)
}

const newestSql = `select died_at, id, rowid from items
  where group_id = ? and letter_state = ? and letter_redrives = ? order by died_at desc, id desc limit 1`

/** The letter that died last. One index lookup for each state and number of redrives that the group has. */
function findNewest(database: Database, { id: groupId, queueId }: Group): string | null {
  const counts = database.readArrays(
    'select state, redrives from letter_counts where queue_id = ? and group_id = ?',
    queueId,
    groupId,
  )
  const [newest] = counts
    .flatMap((count) => {
      const row = database.getArray(newestSql, groupId, readNumber(count, 0), readNumber(count, 1))
      if (row === undefined) return []
      return { deadLetteredAt: readNumber(row, 0), id: readText(row, 1), rowid: readNumber(row, 2) }
    })
    .sort((a, b) => b.deadLetteredAt - a.deadLetteredAt || (a.id > b.id ? -1 : 1))
  if (newest === undefined) return null
  const row = database.getArray('select root_id from items where rowid = ?', newest.rowid)
  return row === undefined ? null : readText(row, 0)
}

export function groupSlugs(database: Database, groupIds: readonly number[]): GroupSlug[] {
  return [...new Set(groupIds)].flatMap((id) => {
    const row = database.getArray('select slug from groups where id = ?', id)
    return row === undefined ? [] : [{ id, slug: readText(row, 0) }]
  })
}

export function groupArrivals(
  database: Database,
  groupIds: readonly number[],
  since: Instant,
): GroupArrivals[] {
  const from = Math.floor(since / usPerHour)
  const sql = 'select hour, n from group_hours where group_id = ? and hour >= ? order by hour'
  return [...new Set(groupIds)].flatMap((groupId) =>
    database
      .readArrays(sql, groupId, from)
      .map((row) => ({ groupId, hour: readNumber(row, 0) * usPerHour, count: readNumber(row, 1) })),
  )
}
