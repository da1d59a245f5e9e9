/** Scheduled messages: they become regular messages when they are due. */
import type {
  DispatchScheduled,
  NewMessage,
  ScheduledMessage,
  WebhookResults,
} from '../../contract/webhooks.ts'
import { encodeHeaders } from '../../shared/items/item-row.ts'
import { readNumber, readNumberOrNull, readText } from '../../shared/rows/row-values.ts'
import {
  messageStatus,
  scheduledCountOffset,
  scheduledStatus,
  toScheduled,
} from '../../shared/rows/webhook-rows.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeBytes, encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'
import { MessageCounts } from './message-counts.ts'

/** A message that may be stored. `at`: its position in the results. */
export type AcceptedMessage = Readonly<{ message: NewMessage; channel: number; at: number; now: number }>

const insertStatement: Statement = {
  name: 'insert-scheduled',
  text: `insert into redrive.webhook_scheduled
      (channel, id, xid, producer, content_type, priority, status, created_at, due_at, headers, payload)
    select u.channel, u.id, u.xid, u.producer, u.content_type, u.priority, ${scheduledStatus.scheduled},
      u.created_at, u.due_at, u.headers, u.payload
    from unnest($1::int4[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int4[], $7::int8[], $8::int8[],
        $9::text[], $10::bytea[])
      with ordinality as u(channel, id, xid, producer, content_type, priority, created_at, due_at, headers, payload, at)
    where not exists (
      select from redrive.webhook_messages m where m.channel = u.channel and m.id = u.id)
    order by u.channel, u.id, u.at
    on conflict (channel, id) do nothing returning xid`,
}

/** Returns the xids of the messages that were stored. */
export async function insertScheduled(
  connection: Connection,
  accepted: readonly AcceptedMessage[],
): Promise<ReadonlySet<string>> {
  if (accepted.length === 0) return new Set()
  const messages = accepted.map(({ message }) => message)
  const rows = await connection.query(insertStatement, [
    encodeInt4s(accepted.map(({ channel }) => channel)),
    encodeTexts(messages.map(({ id }) => id)),
    encodeTexts(messages.map(({ xid }) => xid)),
    encodeTexts(messages.map(({ producerId }) => producerId)),
    encodeTexts(messages.map(({ contentType }) => contentType)),
    encodeInt4s(messages.map(({ priority }) => priority)),
    encodeInt8s(accepted.map(({ now }) => now)),
    encodeInt8s(messages.map(({ dueAt }) => dueAt)),
    encodeTexts(messages.map(({ headers }) => encodeHeaders(headers))),
    encodeBytes(messages.map(({ payload }) => payload)),
  ])
  return new Set(rows.map((row) => readText(row, 'xid')))
}

/** Messages that another server moves now are skipped. */
const moveDue: Statement = {
  name: 'move-due-messages',
  text: `with due as (
      update redrive.webhook_scheduled s set status = ${scheduledStatus.dispatched}, dispatched_at = $1::int8
      where s.number in (
        select d.number from redrive.webhook_scheduled d
        where d.status = ${scheduledStatus.scheduled} and d.due_at <= $1::int8
        order by d.due_at, d.number limit $2::int4 for update skip locked)
      returning s.*
    ), moved as (
      insert into redrive.webhook_messages
        (channel, id, xid, producer, content_type, priority, status, created_at, headers, payload)
      select channel, id, xid, producer, content_type, priority, ${messageStatus.acknowledged}, $1::int8, headers,
        payload from due order by channel, id
      on conflict (channel, id) do nothing returning number, channel, xid
    )
    select due.channel, moved.number from due left join moved on moved.xid = due.xid`,
}

export async function dispatchScheduled(
  { connection, slot }: Transaction,
  { now, countMax }: DispatchScheduled,
): Promise<WebhookResults['dispatch-scheduled']> {
  const rows = await connection.query(moveDue, [now, countMax])
  const counts = new MessageCounts()
  const numbers = rows.flatMap((row): number[] => {
    const channel = readNumber(row, 'channel')
    counts.add(channel, scheduledStatus.scheduled + scheduledCountOffset, -1)
    counts.add(channel, scheduledStatus.dispatched + scheduledCountOffset, 1)
    const number = readNumberOrNull(row, 'number')
    if (number === null) return []
    counts.add(channel, messageStatus.acknowledged, 1)
    return [number]
  })
  await counts.write(connection, slot)
  return { numbers: numbers.sort((left, right) => left - right), isMore: rows.length === countMax }
}

export async function getScheduled(
  connections: Connections,
  channelId: string,
  id: string,
): Promise<ScheduledMessage | null> {
  const text = `select t.*, c.id as channel_id from redrive.webhook_scheduled t
    join redrive.webhook_channels c on c.number = t.channel where c.id = $1 and t.id = $2`
  const [row] = await connections.read({ name: 'get-scheduled', text }, [channelId, id])
  return row === undefined ? null : toScheduled(row)
}
