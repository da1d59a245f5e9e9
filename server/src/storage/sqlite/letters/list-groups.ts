/** Lists the groups of letters, with numbers from the counts. */
import type { Instant } from '../../../core/time/instant.ts'
import type { GroupLabel } from '../../contract/groups.ts'
import type { ListedState } from '../../contract/items.ts'
import type { GroupArrivals, GroupFacts, GroupsQuery } from '../../contract/letters.ts'
import { readConditions } from '../../shared/letters/counted-filter.ts'
import { readNumber, readText, readTextOrNull } from '../../shared/rows/row-values.ts'
import type { Bound, Database, Row } from '../connection/database.ts'
import {
  countGroupColumns,
  countStateColumns,
  groupColumns,
  groupFieldColumns,
  printConditions,
} from '../counts/count-conditions.ts'
import { usPerHour } from '../counts/letter-counts.ts'
import { readLifecycle } from '../groups/lifecycles.ts'
import { listMembers, resolveGroups } from '../groups/resolve-groups.ts'
import { decodeListedState } from '../items/rows.ts'
import { readQueueNames } from '../queues/queue-names.ts'

export function listGroups(database: Database, given: GroupsQuery): GroupFacts[] {
  const query = { ...given, filter: resolveGroups(database, given.filter) }
  const page = readPage(database, query)
  const names = readQueueNames(database)
  return page.flatMap(({ groupId, count }) => {
    const row = database.get('select * from groups where id = ?', groupId)
    if (row === undefined) return []
    const { queueId, ...facts } = decodeGroup(row)
    const members = readMembers(database, groupId)
    const memberIds = members.map(({ id }) => id)
    const firstSeenAt = Math.min(...members.map((member) => member.firstSeenAt))
    const lastSeenAt = Math.max(...members.map((member) => readLastSeen(database, member)))
    return {
      ...facts,
      queue: names.get(queueId) ?? '',
      mergedIds: memberIds.filter((id) => id !== groupId),
      // The first letter of a group may have come from the archive. Then its death is not an arrival.
      firstSeenAt: Math.min(firstSeenAt, lastSeenAt),
      lastSeenAt,
      sampleId: findNewest(database, queueId, memberIds),
      count,
      states: readStates(database, query, queueId, memberIds),
      lifecycle: readLifecycle(database, groupId),
    }
  })
}

type GroupCount = Readonly<{ groupId: number; count: number }>

/** The group that `g` is shown as. */
const shownAs = 'coalesce(g.merged_into, g.id)'

/** At a time, like `readLifecycleAt`. */
const lifecycleState = `coalesce((select case when l.state = 'muted' and l.muted_until <= ? then 'open' else l.state end
  from group_lifecycles l where l.group_id = ${shownAs}), 'open')`

function readPage(database: Database, query: GroupsQuery): GroupCount[] {
  const { filter, after, countMax, isEmptyToo, lifecycle } = query
  const conditions = readConditions(filter)
  const states = printConditions(database, conditions, countStateColumns)
  const columns = isEmptyToo ? groupColumns : { ...countGroupColumns, ...groupFieldColumns }
  const groups = printConditions(database, conditions, columns)
  const count = 'coalesce(sum(c.n), 0)'
  const source = isEmptyToo
    ? `groups g left join letter_counts c on c.queue_id = g.queue_id and c.group_id = g.id and ${states.where}
       where ${groups.where}`
    : `letter_counts c join groups g on g.id = c.group_id where ${states.where} and ${groups.where}`
  const values: Bound[] = [...states.values, ...groups.values]
  if (lifecycle !== undefined) values.push(lifecycle.now, JSON.stringify(lifecycle.states))
  if (after !== undefined) values.push(after.count, after.count, after.id)
  const inState = `and ${lifecycleState} in (select value from json_each(?))`
  const rows = database.readArrays(
    `select ${shownAs}, ${count} from ${source} ${lifecycle === undefined ? '' : inState} group by ${shownAs}
     ${after === undefined ? '' : `having ${count} < ? or (${count} = ? and ${shownAs} > ?)`}
     order by 2 desc, 1 limit +?`,
    ...values,
    countMax,
  )
  return rows.map((row) => ({ groupId: readNumber(row, 0), count: readNumber(row, 1) }))
}

/** From a row of `groups`. */
function decodeGroup(row: Row) {
  const pinned = readTextOrNull(row, 'pinned_title')
  return {
    id: readNumber(row, 'id'),
    queueId: readNumber(row, 'queue_id'),
    fingerprint: readText(row, 'fingerprint'),
    causeKey: readText(row, 'cause_key'),
    origin: readText(row, 'origin'),
    errorCode: readText(row, 'reason'),
    slug: readText(row, 'slug'),
    errorClass: readText(row, 'error_class'),
    title: pinned ?? readText(row, 'title'),
    isTitlePinned: pinned !== null,
  }
}

type Member = Readonly<{ id: number; firstSeenAt: Instant }>

/** The group and those that are shown as it. */
function readMembers(database: Database, groupId: number): Member[] {
  const sql = 'select id, first_seen_at from groups where id = ? or merged_into = ? order by id'
  return database
    .readArrays(sql, groupId, groupId)
    .map((row) => ({ id: readNumber(row, 0), firstSeenAt: readNumber(row, 1) }))
}

function readStates(
  database: Database,
  { filter }: GroupsQuery,
  queueId: number,
  memberIds: readonly number[],
): Partial<Record<ListedState, number>> {
  const columns = { ...countGroupColumns, ...countStateColumns, ...groupFieldColumns }
  const { where, values } = printConditions(database, readConditions(filter), columns)
  const rows = database.readArrays(
    `select c.state, sum(c.n) from letter_counts c join groups g on g.id = c.group_id
     where c.queue_id = ? and c.group_id in (select value from json_each(?)) and ${where} group by c.state`,
    queueId,
    JSON.stringify(memberIds),
    ...values,
  )
  return Object.fromEntries(rows.map((row) => [decodeListedState(readNumber(row, 0)), readNumber(row, 1)]))
}

/** A group that was created for a letter from the archive may have had no arrival since. */
function readLastSeen(database: Database, { id, firstSeenAt }: Member): Instant {
  const sql = 'select last_at from group_hours where group_id = ? order by hour desc limit 1'
  const row = database.getArray(sql, id)
  return row === undefined ? firstSeenAt : readNumber(row, 0)
}

const newestSql = `select died_at, id, rowid from items
  where group_id = ? and letter_state = ? and letter_redrives = ? order by died_at desc, id desc limit 1`
const cellsSql = `select group_id, state, redrives from letter_counts
  where queue_id = ? and group_id in (select value from json_each(?))`

/** The letter that died last. One index lookup for each state and number of redrives that a group has. */
function findNewest(database: Database, queueId: number, memberIds: readonly number[]): string | null {
  const [newest] = database
    .readArrays(cellsSql, queueId, JSON.stringify(memberIds))
    .flatMap((cell) => {
      const row = database.getArray(newestSql, readNumber(cell, 0), readNumber(cell, 1), readNumber(cell, 2))
      if (row === undefined) return []
      return { deadLetteredAt: readNumber(row, 0), id: readText(row, 1), rowid: readNumber(row, 2) }
    })
    .sort((a, b) => b.deadLetteredAt - a.deadLetteredAt || (a.id > b.id ? -1 : 1))
  if (newest === undefined) return null
  const row = database.getArray('select root_id from items where rowid = ?', newest.rowid)
  return row === undefined ? null : readText(row, 0)
}

export function readGroupLabels(database: Database, groupIds: readonly number[]): GroupLabel[] {
  return [...new Set(groupIds)].flatMap((id) => {
    const row = database.getArray('select slug, coalesce(merged_into, id) from groups where id = ?', id)
    return row === undefined ? [] : [{ id, slug: readText(row, 0), shownAs: readNumber(row, 1) }]
  })
}

export function groupArrivals(
  database: Database,
  groupIds: readonly number[],
  since: Instant,
): GroupArrivals[] {
  const from = Math.floor(since / usPerHour)
  const sql = `select hour, sum(n) from group_hours
    where group_id in (select value from json_each(?)) and hour >= ? group by hour order by hour`
  return [...new Set(groupIds)].flatMap((groupId) =>
    database
      .readArrays(sql, JSON.stringify(listMembers(database, [groupId])), from)
      .map((row) => ({ groupId, hour: readNumber(row, 0) * usPerHour, count: readNumber(row, 1) })),
  )
}
