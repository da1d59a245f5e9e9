/** Scheduled messages: they become regular messages when they are due. */
import type {
  DispatchScheduled,
  NewMessage,
  ScheduledMessage,
  WebhookResults,
} from '../../contract/webhooks.ts'
import { encodeHeaders } from '../../shared/items/item-row.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import {
  messageStatus,
  scheduledCountOffset,
  scheduledStatus,
  toScheduled,
} from '../../shared/rows/webhook-rows.ts'
import type { Database, Row } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'
import { MessageCounts } from './message-counts.ts'

const takenSql = 'select 1 from webhook_messages where channel = ? and id = ?'
const insertSql = `insert into webhook_scheduled
    (channel, id, xid, producer, content_type, priority, status, created_at, due_at, headers, payload)
  values (?, ?, ?, ?, ?, ?, ${scheduledStatus.scheduled}, ?, ?, ?, ?)
  on conflict (channel, id) do nothing returning number`

/** False: the channel has a message with this id, scheduled or not. */
export function insertScheduled(
  database: Database,
  channel: number,
  { id, xid, producerId, contentType, priority, headers, payload }: NewMessage,
  dueAt: number,
  now: number,
): boolean {
  if (database.getArray(takenSql, channel, id) !== undefined) return false
  const row = database.get(
    insertSql,
    ...[channel, id, xid, producerId, contentType, priority, now, dueAt, encodeHeaders(headers), payload],
  )
  return row !== undefined
}

const dueSql = `select number, channel from webhook_scheduled
  where status = ${scheduledStatus.scheduled} and due_at <= ? order by due_at, number limit +?`
const moveSql = `insert into webhook_messages
    (channel, id, xid, producer, content_type, priority, status, created_at, headers, payload)
  select channel, id, xid, producer, content_type, priority, ${messageStatus.acknowledged}, ?, headers, payload
  from webhook_scheduled where number = ?
  on conflict (channel, id) do nothing returning number`
const dispatchedSql = `update webhook_scheduled
  set status = ${scheduledStatus.dispatched}, dispatched_at = ? where number = ?`

export function dispatchScheduled(
  { database }: Transaction,
  { now, countMax }: DispatchScheduled,
): WebhookResults['dispatch-scheduled'] {
  const due = database.all(dueSql, now, countMax)
  const counts = new MessageCounts()
  const numbers = due.flatMap((row: Row): number[] => {
    const channel = readNumber(row, 'channel')
    const moved = database.get(moveSql, now, readNumber(row, 'number'))
    database.run(dispatchedSql, now, readNumber(row, 'number'))
    counts.add(channel, scheduledStatus.scheduled + scheduledCountOffset, -1)
    counts.add(channel, scheduledStatus.dispatched + scheduledCountOffset, 1)
    if (moved === undefined) return []
    counts.add(channel, messageStatus.acknowledged, 1)
    return [readNumber(moved, 'number')]
  })
  counts.write(database)
  return { numbers, isMore: due.length === countMax }
}

export function getScheduled(database: Database, channelId: string, id: string): ScheduledMessage | null {
  const sql = `select t.*, c.id as channel_id from webhook_scheduled t
    join webhook_channels c on c.number = t.channel where c.id = ? and t.id = ?`
  const row = database.get(sql, channelId, id)
  return row === undefined ? null : toScheduled(row)
}
