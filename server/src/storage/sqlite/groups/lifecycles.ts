/** The lifecycle of groups, and the notices that alerts read. */
import type { GroupLifecycle } from '../../../core/dead-letters/group-lifecycle.ts'
import { openLifecycle } from '../../../core/dead-letters/group-lifecycle.ts'
import { KnownError } from '../../../errors.ts'
import type {
  ClearGroupNotices,
  GroupNotice,
  GroupResults,
  SetGroupLifecycle,
} from '../../contract/groups.ts'
import { toGroupLifecycle, toGroupNotice } from '../../shared/rows/lifecycle-rows.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

export function setGroupLifecycle(
  { database, countChanges }: Transaction,
  { groupId: named, lifecycle }: SetGroupLifecycle,
): GroupResults['set-group-lifecycle'] {
  const row = database.getArray(
    'select s.id, s.queue_id from groups g join groups s on s.id = coalesce(g.merged_into, g.id) where g.id = ?',
    named,
  )
  if (row === undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${named} does not exist`)
  // Letters of earlier commands of this transaction arrived before the decision.
  countChanges.letters.regressGroups(database)
  const [groupId, queueId] = [readNumber(row, 0), readNumber(row, 1)]
  const before = readLifecycle(database, groupId)
  const { state, changedAt, mutedUntil, actor, note } = lifecycle
  database.run(
    `insert or replace into group_lifecycles (group_id, queue_id, state, changed_at, muted_until, actor, note)
     values (?, ?, ?, ?, ?, ?, ?)`,
    ...[groupId, queueId, state, changedAt, mutedUntil, actor, note],
  )
  return { groupId, before }
}

export function readLifecycle(database: Database, groupId: number): GroupLifecycle {
  const row = database.get('select * from group_lifecycles where group_id = ?', groupId)
  return row === undefined ? openLifecycle : toGroupLifecycle(row)
}

const regressSql = `update group_lifecycles set state = 'regressed', changed_at = max(changed_at, ?)
  where group_id = (select coalesce(merged_into, id) from groups where id = ?) and state = 'resolved'`
const noticeSql = `insert into group_notices (group_id, queue_id, kind, at)
  select s.id, s.queue_id, 'regressed', ? from groups g join groups s on s.id = coalesce(g.merged_into, g.id)
  where g.id = ? on conflict (group_id) do update set kind = excluded.kind, at = max(at + 1, excluded.at)`

/** The group got a letter: it is not resolved. */
export function regressGroup(database: Database, groupId: number, arrivedAt: number): void {
  if (database.run(regressSql, arrivedAt, groupId) > 0) database.run(noticeSql, arrivedAt, groupId)
}

export function listGroupNotices(database: Database, countMax: number): GroupNotice[] {
  return database.all('select * from group_notices order by group_id limit +?', countMax).map(toGroupNotice)
}

export function clearGroupNotices({ database }: Transaction, { notices }: ClearGroupNotices): undefined {
  for (const { groupId, kind, at } of notices) {
    database.run('delete from group_notices where group_id = ? and kind = ? and at = ?', groupId, kind, at)
  }
}
