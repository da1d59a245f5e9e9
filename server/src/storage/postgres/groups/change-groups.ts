/** Changes of groups by a person. */
import { isStorableText } from '../../../core/text/storable-text.ts'
import type { GroupResults, MergeCauses, MergeGroups, PinTitle } from '../../contract/groups.ts'
import { causeNotFound, checkMerge } from '../../shared/letters/merge-checks.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import { encodeInt4s } from '../connection/encode-arrays.ts'
import { isInt4 } from '../counts/count-conditions.ts'
import type { Transaction } from '../transaction.ts'
import { findKey } from './list-causes.ts'
import { lockAllCauses, lockGroups, mergeCauses, mergeGroups } from './merge-groups.ts'

const readQueues: Statement = {
  name: 'queues-of-groups',
  text: 'select distinct g.queue_id from redrive.groups g where g.id = any ($1::int4[])',
}
const readToMerge: Statement = {
  name: 'groups-to-merge',
  text: `select g.id, g.queue_id, q.name as queue, coalesce(g.merged_into, g.id) as shown_as
    from redrive.groups g join redrive.queues q on q.id = g.queue_id where g.id = any ($1::int4[])`,
}

export async function mergeGroupsByHand(
  { connection }: Transaction,
  { into, groupIds }: MergeGroups,
): Promise<GroupResults['merge-groups']> {
  const wanted = [...new Set([into, ...groupIds])]
  const ids = encodeInt4s(wanted.filter(isInt4))
  const queueIds = (await connection.query(readQueues, [ids])).map((row) => readNumber(row, 'queue_id'))
  await lockGroups(connection, queueIds)
  await lockAllCauses(connection)
  // Read after the lock: another server may have merged the groups.
  const found = (await connection.query(readToMerge, [ids])).map((row) => ({
    id: readNumber(row, 'id'),
    queueId: readNumber(row, 'queue_id'),
    queue: readText(row, 'queue'),
    shownAs: readNumber(row, 'shown_as'),
  }))
  const groups = checkMerge(wanted, found)
  const target = groups.get(into)
  const groupId = target?.shownAs ?? into
  const merged = [...new Set(found.map(({ shownAs }) => shownAs))].filter((id) => id !== groupId)
  await mergeGroups(
    connection,
    merged.map((id) => [id, groupId]),
  )
  return { groupId, queue: target?.queue ?? '', merged }
}

export async function mergeCausesByHand(
  { connection }: Transaction,
  { into, causeKeys }: MergeCauses,
): Promise<GroupResults['merge-causes']> {
  await lockAllCauses(connection)
  const readKey = async (causeKey: string): Promise<string> => {
    const [row] = isStorableText(causeKey) ? await connection.query(findKey, [causeKey]) : []
    if (row === undefined) throw causeNotFound(causeKey)
    return readText(row, 'cause_key')
  }
  const causeKey = await readKey(into)
  const merged = new Set<string>()
  for (const key of causeKeys) merged.add(await readKey(key))
  merged.delete(causeKey)
  await mergeCauses(connection, new Map([...merged].map((key) => [key, causeKey])))
  return { causeKey, merged: [...merged] }
}

const pinTitles: Statement = {
  name: 'pin-titles',
  text: `with shown as materialized (
      select g.id, coalesce(g.pinned_title, g.title) as title from redrive.groups g
      where g.id in (select coalesce(f.merged_into, f.id) from redrive.groups f where f.id = any ($1::int4[]))
      order by g.id for no key update
    ), pinned as (
      update redrive.groups g set pinned_title = $2 from shown s where g.id = s.id)
    select s.id, s.title from shown s order by s.id`,
}

export async function pinTitle(
  { connection }: Transaction,
  { groupIds, title }: PinTitle,
): Promise<GroupResults['pin-title']> {
  const rows = await connection.query(pinTitles, [encodeInt4s(groupIds.filter(isInt4)), title])
  return { groups: rows.map((row) => ({ id: readNumber(row, 'id'), title: readText(row, 'title') })) }
}
