/** The lifecycle of groups, and the notices that alerts read. */
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
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { isInt4 } from '../counts/count-conditions.ts'
import type { Transaction } from '../transaction.ts'

const findShown: Statement = {
  name: 'find-shown-group',
  text: `select s.id, s.queue_id from redrive.groups g
    join redrive.groups s on s.id = coalesce(g.merged_into, g.id) where g.id = $1`,
}
/** Letters of the queue that are stored at the same time are committed before, or see the decision. */
const lockArrivals: Statement = {
  name: 'lock-arrivals',
  text: 'select from redrive.partitions p where p.queue_id = $1 order by p.partition for update',
}
const readStored: Statement = {
  name: 'lock-lifecycle',
  text: 'select * from redrive.group_lifecycles where group_id = $1 for update',
}
const putLifecycle: Statement = {
  name: 'put-lifecycle',
  text: `insert into redrive.group_lifecycles (group_id, queue_id, state, changed_at, muted_until, actor, note)
    values ($1, $2, $3, $4, $5, $6, $7) on conflict (group_id) do update set state = excluded.state,
      changed_at = excluded.changed_at, muted_until = excluded.muted_until, actor = excluded.actor, note = excluded.note`,
}

export async function setGroupLifecycle(
  transaction: Transaction,
  { groupId: named, lifecycle }: SetGroupLifecycle,
): Promise<GroupResults['set-group-lifecycle']> {
  const { connection } = transaction
  const [shown] = isInt4(named) ? await connection.query(findShown, [named]) : []
  if (shown === undefined) throw new KnownError('GROUP_NOT_FOUND', `group ${named} does not exist`)
  const [groupId, queueId] = [readNumber(shown, 'id'), readNumber(shown, 'queue_id')]
  await connection.query(lockArrivals, [queueId])
  // Letters of earlier commands of this transaction arrived before the decision.
  await transaction.flushLetters()
  const [stored] = await connection.query(readStored, [groupId])
  const { state, changedAt, mutedUntil, actor, note } = lifecycle
  await connection.query(putLifecycle, [groupId, queueId, state, changedAt, mutedUntil, actor, note])
  return { groupId, before: stored === undefined ? openLifecycle : toGroupLifecycle(stored) }
}

export async function listGroupNotices(connections: Connections, countMax: number): Promise<GroupNotice[]> {
  const text = 'select * from redrive.group_notices order by group_id limit $1'
  return (await connections.read({ name: 'group-notices', text }, [countMax])).map(toGroupNotice)
}

const deleteNotices: Statement = {
  name: 'clear-group-notices',
  text: `delete from redrive.group_notices n
    using unnest($1::int4[], $2::text[], $3::int8[]) as w(group_id, kind, at)
    where n.group_id = w.group_id and n.kind = w.kind and n.at = w.at`,
}

export async function clearGroupNotices(
  { connection }: Transaction,
  { notices }: ClearGroupNotices,
): Promise<undefined> {
  if (notices.length === 0) return
  await connection.query(deleteNotices, [
    encodeInt4s(notices.map(({ groupId }) => groupId)),
    encodeTexts(notices.map(({ kind }) => kind)),
    encodeInt8s(notices.map(({ at }) => at)),
  ])
}
