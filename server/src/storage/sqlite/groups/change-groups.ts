/** Changes of groups by a person. */
import type { GroupResults, MergeCauses, MergeGroups, PinTitle } from '../../contract/groups.ts'
import { causeNotFound, checkMerge } from '../../shared/letters/merge-checks.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Transaction } from '../transaction.ts'
import { findCauseKey } from './list-causes.ts'
import { mergeCause, mergeGroups } from './merge-groups.ts'

const readSql = `select g.id, g.queue_id, q.name, coalesce(g.merged_into, g.id)
  from groups g join queues q on q.id = g.queue_id where g.id in (select value from json_each(?))`

export function mergeGroupsByHand(
  { database }: Transaction,
  { into, groupIds }: MergeGroups,
): GroupResults['merge-groups'] {
  const wanted = [...new Set([into, ...groupIds])]
  const found = database.readArrays(readSql, JSON.stringify(wanted)).map((row) => ({
    id: readNumber(row, 0),
    queueId: readNumber(row, 1),
    queue: readText(row, 2),
    shownAs: readNumber(row, 3),
  }))
  const groups = checkMerge(wanted, found)
  const target = groups.get(into)
  const groupId = target?.shownAs ?? into
  const merged = [...new Set(found.map(({ shownAs }) => shownAs))].filter((id) => id !== groupId)
  mergeGroups(
    database,
    merged.map((id) => [id, groupId]),
  )
  return { groupId, queue: target?.queue ?? '', merged }
}

export function mergeCausesByHand(
  { database }: Transaction,
  { into, causeKeys }: MergeCauses,
): GroupResults['merge-causes'] {
  const readKey = (causeKey: string): string => {
    const key = findCauseKey(database, causeKey)
    if (key === null) throw causeNotFound(causeKey)
    return key
  }
  const causeKey = readKey(into)
  const merged = [...new Set(causeKeys.map(readKey))].filter((key) => key !== causeKey)
  for (const key of merged) mergeCause(database, key, causeKey)
  return { causeKey, merged }
}

const titleSql = `select id, coalesce(pinned_title, title) from groups
  where id in (select coalesce(merged_into, id) from groups where id in (select value from json_each(?)))`

export function pinTitle(
  { database }: Transaction,
  { groupIds, title }: PinTitle,
): GroupResults['pin-title'] {
  const groups = database
    .readArrays(titleSql, JSON.stringify(groupIds))
    .map((row) => ({ id: readNumber(row, 0), title: readText(row, 1) }))
  for (const { id } of groups) database.run('update groups set pinned_title = ? where id = ?', title, id)
  return { groups }
}
